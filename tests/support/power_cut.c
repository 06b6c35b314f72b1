/* What a program asks of its disk, in order, so that a power cut can be played afterwards (LD_PRELOAD).
 *
 * POWER_CUT_ROOT     a folder: only what happens below it is recorded
 * POWER_CUT_JOURNAL  the record, outside that folder (power_cut.py reads it)
 *
 * Each record is written after the call it speaks of has succeeded, in one piece. A sync says how many
 * records there were when it began: what came later may not be covered by it.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

/* Which file it is about: `inode`. `number` is an offset, a length, or a count of records. */
struct record {
    uint32_t bytes, first_path, second_path;
    char what; /* W write, T truncate, S sync, N name given, M name moved, R name removed, D folder made */
    char unused[3];
    uint64_t inode;
    int64_t number;
};

static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;
static uint64_t records;

static int below_root(const char *path, char *whole) {
    const char *root = getenv("POWER_CUT_ROOT");
    char folder[PATH_MAX], *slash;
    if (!root) return 0;
    /* The file may not be there (any more), but its folder is. */
    if (strlen(path) >= PATH_MAX) return 0;
    strcpy(folder, path);
    slash = strrchr(folder, '/');
    if (slash) *slash = 0;
    char real[PATH_MAX];
    if (!realpath(slash ? (folder[0] ? folder : "/") : ".", real)) return 0;
    if (snprintf(whole, PATH_MAX, "%s/%s", real, slash ? path + (slash - folder) + 1 : path) >= PATH_MAX) return 0;
    return strncmp(whole, root, strlen(root)) == 0 && whole[strlen(root)] == '/';
}

static int watched(int fd, uint64_t *inode) {
    char link[64], path[PATH_MAX];
    const char *root = getenv("POWER_CUT_ROOT");
    struct stat about;
    if (!root || fstat(fd, &about) != 0 || !(S_ISREG(about.st_mode) || S_ISDIR(about.st_mode))) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return 0;
    path[length] = 0;
    *inode = about.st_ino;
    return strncmp(path, root, strlen(root)) == 0;
}

static void note(struct record record, const char *first, const char *second, const void *bytes) {
    static int journal = -1;
    record.first_path = first ? strlen(first) : 0;
    record.second_path = second ? strlen(second) : 0;
    struct iovec parts[] = {
        {&record, sizeof record}, {(void *)first, record.first_path},
        {(void *)second, record.second_path}, {(void *)bytes, record.bytes},
    };
    if (journal < 0)
        journal = REAL(open)(getenv("POWER_CUT_JOURNAL"), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (writev(journal, parts, 4) < 0) abort(); /* a record that is not whole proves nothing */
    records++;
}

static uint64_t inode_of(const char *path) {
    struct stat about;
    return lstat(path, &about) == 0 ? about.st_ino : 0;
}

static int opened(int fd, const char *path, int flags) {
    char whole[PATH_MAX];
    if (fd < 0 || !(flags & (O_CREAT | O_TRUNC)) || !below_root(path, whole)) return fd;
    uint64_t inode;
    if (!watched(fd, &inode)) return fd;
    pthread_mutex_lock(&one_at_a_time);
    if (flags & O_CREAT) note((struct record){.what = 'N', .inode = inode}, whole, NULL, NULL);
    if (flags & O_TRUNC) note((struct record){.what = 'T', .inode = inode}, NULL, NULL, NULL);
    pthread_mutex_unlock(&one_at_a_time);
    return fd;
}

#define MODE(flags) \
    mode_t mode = 0; \
    if ((flags) & O_CREAT) { va_list more; va_start(more, flags); mode = va_arg(more, mode_t); va_end(more); }

int open(const char *path, int flags, ...) { MODE(flags) return opened(REAL(open)(path, flags, mode), path, flags); }
int open64(const char *path, int flags, ...) { MODE(flags) return opened(REAL(open64)(path, flags, mode), path, flags); }

static int settled(int fd, int (*sync)(int)) {
    uint64_t inode, before = records; /* read without the lock: fewer is the careful side */
    int result = sync(fd);
    if (result == 0 && watched(fd, &inode)) {
        pthread_mutex_lock(&one_at_a_time);
        note((struct record){.what = 'S', .inode = inode, .number = (int64_t)before}, NULL, NULL, NULL);
        pthread_mutex_unlock(&one_at_a_time);
    }
    return result;
}

int fsync(int fd) { return settled(fd, REAL(fsync)); }
int fdatasync(int fd) { return settled(fd, REAL(fdatasync)); }

static ssize_t written(int fd, const void *bytes, ssize_t count, off64_t at) {
    uint64_t inode;
    if (count > 0 && watched(fd, &inode))
        note((struct record){.what = 'W', .inode = inode, .number = at, .bytes = (uint32_t)count}, NULL, NULL, bytes);
    return count;
}

ssize_t pwrite(int fd, const void *bytes, size_t count, off_t at) {
    pthread_mutex_lock(&one_at_a_time);
    ssize_t done = written(fd, bytes, REAL(pwrite)(fd, bytes, count, at), at);
    pthread_mutex_unlock(&one_at_a_time);
    return done;
}

ssize_t pwrite64(int fd, const void *bytes, size_t count, off64_t at) {
    pthread_mutex_lock(&one_at_a_time);
    ssize_t done = written(fd, bytes, REAL(pwrite64)(fd, bytes, count, at), at);
    pthread_mutex_unlock(&one_at_a_time);
    return done;
}

ssize_t write(int fd, const void *bytes, size_t count) {
    uint64_t inode;
    if (!watched(fd, &inode)) return REAL(write)(fd, bytes, count); /* a pipe may make it wait */
    pthread_mutex_lock(&one_at_a_time);
    ssize_t done = REAL(write)(fd, bytes, count);
    if (done > 0) written(fd, bytes, done, lseek64(fd, 0, SEEK_CUR) - done);
    pthread_mutex_unlock(&one_at_a_time);
    return done;
}

static int cut(int fd, int64_t length, int result) {
    uint64_t inode;
    if (result == 0 && watched(fd, &inode))
        note((struct record){.what = 'T', .inode = inode, .number = length}, NULL, NULL, NULL);
    return result;
}

int ftruncate(int fd, off_t length) {
    pthread_mutex_lock(&one_at_a_time);
    int result = cut(fd, length, REAL(ftruncate)(fd, length));
    pthread_mutex_unlock(&one_at_a_time);
    return result;
}

int ftruncate64(int fd, off64_t length) {
    pthread_mutex_lock(&one_at_a_time);
    int result = cut(fd, length, REAL(ftruncate64)(fd, length));
    pthread_mutex_unlock(&one_at_a_time);
    return result;
}

static void named(char what, uint64_t inode, const char *first, const char *second) {
    char one[PATH_MAX], other[PATH_MAX];
    if (below_root(first, one) && (!second || below_root(second, other)))
        note((struct record){.what = what, .inode = inode}, one, second ? other : NULL, NULL);
}

int rename(const char *from, const char *to) {
    pthread_mutex_lock(&one_at_a_time);
    int result = REAL(rename)(from, to);
    if (result == 0) named('M', inode_of(to), from, to);
    pthread_mutex_unlock(&one_at_a_time);
    return result;
}

int link(const char *from, const char *to) {
    pthread_mutex_lock(&one_at_a_time);
    int result = REAL(link)(from, to);
    if (result == 0) named('N', inode_of(to), to, NULL);
    pthread_mutex_unlock(&one_at_a_time);
    return result;
}

int unlink(const char *path) {
    pthread_mutex_lock(&one_at_a_time);
    int result = REAL(unlink)(path);
    if (result == 0) named('R', 0, path, NULL);
    pthread_mutex_unlock(&one_at_a_time);
    return result;
}

int mkdir(const char *path, mode_t mode) {
    pthread_mutex_lock(&one_at_a_time);
    int result = REAL(mkdir)(path, mode);
    if (result == 0) named('D', inode_of(path), path, NULL);
    pthread_mutex_unlock(&one_at_a_time);
    return result;
}
