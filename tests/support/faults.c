/* Faults below the program, switched on by files that appear while it runs (LD_PRELOAD).
 *
 * FAULT_FSYNC_FAILS  the file exists: fsync and fdatasync fail with EIO
 * FAULT_DISK_FULL    the file exists: writes to regular files fail with ENOSPC
 * FAULT_CLOCK        the file holds seconds (may be negative) by which the wall clock is off
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static int fault(const char *variable) {
    const char *path = getenv(variable);
    return path && access(path, F_OK) == 0;
}

static int full(int fd) {
    struct stat about;
    if (!getenv("FAULT_DISK_FULL") || fstat(fd, &about) != 0 || !S_ISREG(about.st_mode)) return 0;
    return fault("FAULT_DISK_FULL");
}

int fsync(int fd) {
    if (fault("FAULT_FSYNC_FAILS")) { errno = EIO; return -1; }
    return REAL(fsync)(fd);
}

int fdatasync(int fd) {
    if (fault("FAULT_FSYNC_FAILS")) { errno = EIO; return -1; }
    return REAL(fdatasync)(fd);
}

ssize_t write(int fd, const void *bytes, size_t count) {
    if (full(fd)) { errno = ENOSPC; return -1; }
    return REAL(write)(fd, bytes, count);
}

ssize_t pwrite(int fd, const void *bytes, size_t count, off_t at) {
    if (full(fd)) { errno = ENOSPC; return -1; }
    return REAL(pwrite)(fd, bytes, count, at);
}

ssize_t pwrite64(int fd, const void *bytes, size_t count, off64_t at) {
    if (full(fd)) { errno = ENOSPC; return -1; }
    return REAL(pwrite64)(fd, bytes, count, at);
}

static long clock_is_off(void) {
    const char *path = getenv("FAULT_CLOCK");
    char text[32] = {0};
    int fd;
    if (!path || (fd = open(path, O_RDONLY)) < 0) return 0;
    if (read(fd, text, sizeof text - 1) < 0) text[0] = 0;
    close(fd);
    return atol(text);
}

int clock_gettime(clockid_t which, struct timespec *now) {
    int result = REAL(clock_gettime)(which, now);
    if (result == 0 && which == CLOCK_REALTIME) now->tv_sec += clock_is_off();
    return result;
}

int gettimeofday(struct timeval *now, void *zone) {
    int result = REAL(gettimeofday)(now, zone);
    if (result == 0) now->tv_sec += clock_is_off();
    return result;
}

time_t time(time_t *into) {
    time_t now = REAL(time)(NULL) + clock_is_off();
    if (into) *into = now;
    return now;
}
