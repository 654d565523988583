/* Lets the wall clock of a process be set: adds the seconds in the file $STEP_FILE to it. A second number in the
   file is time that passed: it is added to the clock that counts while a machine sleeps, and to the wall clock. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static void read_file(long *step, long *passed) {
    const char *path = getenv("STEP_FILE");
    char text[64] = "";
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0)
        return;
    if (read(fd, text, sizeof text - 1) > 0)
        sscanf(text, "%ld %ld", step, passed);
    close(fd);
}

int clock_gettime(clockid_t id, struct timespec *at) {
    long step = 0, passed = 0;
    int result = syscall(SYS_clock_gettime, id, at);
    if (result || (id != CLOCK_REALTIME && id != CLOCK_REALTIME_COARSE && id != CLOCK_BOOTTIME))
        return result;
    read_file(&step, &passed);
    at->tv_sec += id == CLOCK_BOOTTIME ? passed : passed + step;
    return 0;
}
