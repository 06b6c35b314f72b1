/* Faults below the program, switched on by files that appear while it runs (LD_PRELOAD).
 *
 * FAULT_DISK   the file holds CALL N ERRNO: every N-th write, fsync, rename or open fails with ERRNO. Only regular
 *              files count; a rename or open only below FAULT_ROOT, and an open only for writing
 * FAULT_CLOCK  the file holds seconds (may be negative) by which the wall clock is off
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static const char *content(const char *variable, char *text, size_t size) {
    const char *path = getenv(variable);
    int fd;
    memset(text, 0, size);
    if (!path || (fd = REAL(open)(path, O_RDONLY)) < 0) return text;
    if (REAL(read)(fd, text, size - 1) < 0) text[0] = 0;
    close(fd);
    return text;
}

static int fails(const char *call) {
    static atomic_uint calls;
    char text[32], what[8];
    unsigned every;
    int number;
    if (sscanf(content("FAULT_DISK", text, sizeof text), "%7s %u %d", what, &every, &number) != 3) return 0;
    if (every == 0 || strcmp(what, call) || ++calls % every) return 0;
    errno = number;
    return 1;
}

static int on_disk(int fd) {
    struct stat about;
    return getenv("FAULT_DISK") && fstat(fd, &about) == 0 && S_ISREG(about.st_mode);
}

static int below_root(const char *path) {
    const char *root = getenv("FAULT_ROOT");
    return root && strncmp(path, root, strlen(root)) == 0;
}

int fsync(int fd) {
    return fails("fsync") ? -1 : REAL(fsync)(fd);
}

int fdatasync(int fd) {
    return fails("fsync") ? -1 : REAL(fdatasync)(fd);
}

ssize_t write(int fd, const void *bytes, size_t count) {
    return on_disk(fd) && fails("write") ? -1 : REAL(write)(fd, bytes, count);
}

ssize_t pwrite(int fd, const void *bytes, size_t count, off_t at) {
    return on_disk(fd) && fails("write") ? -1 : REAL(pwrite)(fd, bytes, count, at);
}

ssize_t pwrite64(int fd, const void *bytes, size_t count, off64_t at) {
    return on_disk(fd) && fails("write") ? -1 : REAL(pwrite64)(fd, bytes, count, at);
}

int rename(const char *from, const char *to) {
    return below_root(to) && fails("rename") ? -1 : REAL(rename)(from, to);
}

#define OPEN(name) \
    int name(const char *path, int flags, ...) { \
        mode_t mode = 0; \
        if (flags & (O_CREAT | O_TMPFILE)) { \
            va_list more; \
            va_start(more, flags); \
            mode = va_arg(more, mode_t); \
            va_end(more); \
        } \
        return (flags & O_ACCMODE) != O_RDONLY && below_root(path) && fails("open") \
            ? -1 : REAL(name)(path, flags, mode); \
    }
OPEN(open)
OPEN(open64)

static long clock_is_off(void) {
    char text[32];
    return atol(content("FAULT_CLOCK", text, sizeof text));
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
