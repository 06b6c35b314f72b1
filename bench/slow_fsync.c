/* LD_PRELOAD: a disk whose fsync takes SLOW_FSYNC_US microseconds longer. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static void be_slow(void) {
    const char *us = getenv("SLOW_FSYNC_US");
    if (us) usleep((useconds_t)atol(us));
}

int fsync(int fd) {
    be_slow();
    return REAL(fsync)(fd);
}

int fdatasync(int fd) {
    be_slow();
    return REAL(fdatasync)(fd);
}
