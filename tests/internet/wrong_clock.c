/* A host's own clock: preloaded into its processes, it adds seconds to the time of day that the C library tells them.

The seconds are in the file `offset` beside this library, and may change while processes run, as a clock that is set.
Clocks that only go on (CLOCK_MONOTONIC and the like) are the machine's. A wait until a time of day lasts until that
time of this host; no moment since the machine's start is as late as YEAR_2001, so that what waits tells which it means.
*/

#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define YEAR_2001 1000000000
#define THE_REAL(result, name, version, ...)                                                    \
    static result (*real)(__VA_ARGS__);                                                         \
    if (real == NULL) real = (result(*)(__VA_ARGS__))find(#name, version)

static const volatile int64_t *offset;

static void *find(const char *name, const char *version) {
    void *found = version ? dlvsym(RTLD_NEXT, name, version) : NULL;
    return found ? found : dlsym(RTLD_NEXT, name);
}

__attribute__((constructor)) static void begin(void) {
    Dl_info self;
    char path[4096];
    if (!dladdr((void *)begin, &self)) return;
    const char *slash = strrchr(self.dli_fname, '/');
    snprintf(path, sizeof path, "%.*soffset", slash ? (int)(slash - self.dli_fname) + 1 : 0, self.dli_fname);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return;
    void *page = mmap(NULL, sizeof *offset, PROT_READ, MAP_SHARED, file, 0);
    close(file);
    if (page != MAP_FAILED) offset = page;
}

static int64_t seconds(void) { return offset ? *offset : 0; }

static int is_wall(clockid_t clock) {
    return clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE || clock == CLOCK_TAI;
}

static const struct timespec *on_machine(const struct timespec *until, struct timespec *moved) {
    if (until == NULL || until->tv_sec < YEAR_2001) return until;
    *moved = *until;
    moved->tv_sec -= seconds();
    return moved;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    THE_REAL(int, clock_gettime, NULL, clockid_t, struct timespec *);
    int answer = real(clock, now);
    if (answer == 0 && is_wall(clock)) now->tv_sec += seconds();
    return answer;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    THE_REAL(int, gettimeofday, NULL, struct timeval *, void *);
    int answer = real(now, zone);
    if (answer == 0) now->tv_sec += seconds();
    return answer;
}

time_t time(time_t *place) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (place != NULL) *place = now.tv_sec;
    return now.tv_sec;
}

int timespec_get(struct timespec *now, int base) {
    if (base != TIME_UTC) return 0;
    return clock_gettime(CLOCK_REALTIME, now) == 0 ? base : 0;
}

int clock_nanosleep(clockid_t clock, int flags, const struct timespec *until, struct timespec *left) {
    THE_REAL(int, clock_nanosleep, NULL, clockid_t, int, const struct timespec *, struct timespec *);
    struct timespec moved;
    return real(clock, flags, flags & TIMER_ABSTIME ? on_machine(until, &moved) : until, left);
}

int sem_timedwait(sem_t *restrict semaphore, const struct timespec *restrict until) {
    THE_REAL(int, sem_timedwait, NULL, sem_t *, const struct timespec *);
    struct timespec moved;
    return real(semaphore, on_machine(until, &moved));
}

int sem_clockwait(sem_t *restrict semaphore, clockid_t clock, const struct timespec *restrict until) {
    THE_REAL(int, sem_clockwait, NULL, sem_t *, clockid_t, const struct timespec *);
    struct timespec moved;
    return real(semaphore, clock, on_machine(until, &moved));
}

int pthread_cond_timedwait(
    pthread_cond_t *restrict condition, pthread_mutex_t *restrict mutex, const struct timespec *restrict until
) {
    THE_REAL(
        int, pthread_cond_timedwait, "GLIBC_2.3.2", pthread_cond_t *, pthread_mutex_t *, const struct timespec *
    );
    struct timespec moved;
    return real(condition, mutex, on_machine(until, &moved));
}

int pthread_cond_clockwait(
    pthread_cond_t *restrict condition, pthread_mutex_t *restrict mutex, clockid_t clock,
    const struct timespec *restrict until
) {
    THE_REAL(
        int, pthread_cond_clockwait, NULL, pthread_cond_t *, pthread_mutex_t *, clockid_t, const struct timespec *
    );
    struct timespec moved;
    return real(condition, mutex, clock, on_machine(until, &moved));
}

int timerfd_settime(int file, int flags, const struct itimerspec *wanted, struct itimerspec *before) {
    THE_REAL(int, timerfd_settime, NULL, int, int, const struct itimerspec *, struct itimerspec *);
    struct itimerspec moved = *wanted;
    if (flags & TFD_TIMER_ABSTIME) on_machine(&wanted->it_value, &moved.it_value);
    return real(file, flags, &moved, before);
}

/* Who waits by the kernel's futex itself calls no other function of the C library for it. */
long syscall(long number, ...) {
    THE_REAL(long, syscall, NULL, long, ...);
    __builtin_va_list more;
    long given[6];
    __builtin_va_start(more, number);
    for (int k = 0; k < 6; k++) given[k] = __builtin_va_arg(more, long);
    __builtin_va_end(more);
    struct timespec moved;
    if (number == SYS_futex && (given[1] & FUTEX_CMD_MASK) == FUTEX_WAIT_BITSET)
        given[3] = (long)on_machine((const struct timespec *)given[3], &moved);
    return real(number, given[0], given[1], given[2], given[3], given[4], given[5]);
}
