/* Job control on a real (pseudo) terminal: plays the shell. `terminal_test PERFKIT TARGET` starts
 * perfkit as a foreground job, types ^C and ^Z, continues it, and checks what the job and the
 * program saw. Prints what went wrong; exit 0 = all as without perfkit. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int failures;

static void check(int ok, const char *what)
{
    if (!ok) {
        printf("failed: %s\n", what);
        failures++;
    }
}

static char state_of(pid_t pid)
{
    char path[64], text[512] = "";
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    FILE *in = fopen(path, "re");
    if (!in)
        return '-';
    char *got = fgets(text, sizeof text, in);
    fclose(in);
    char *bracket = got ? strrchr(text, ')') : NULL;
    return bracket ? bracket[2] : '-';
}

/* Against a hang only: other programs may have the processors. */
#define UNTIL(condition)                                                                           \
    for (int again = 0; again < 60000 && !(condition); again++)                                    \
    nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL)

/* Waits until the job stops or ends; returns its wait status. */
static int await(pid_t job, int stops, const char *what)
{
    int status = -1;
    pid_t changed = 0;
    UNTIL((changed = waitpid(job, &status, WNOHANG | WUNTRACED)) != 0);
    check(changed == job && !!WIFSTOPPED(status) == stops, what);
    return status;
}

/* The next line of the program, which prints one for each signal that it catches. */
static void expect(FILE *program, const char *wanted, const char *what)
{
    char line[256] = "";
    int whole = fgets(line, sizeof line, program) && strcmp(line, wanted) == 0;
    if (!whole)
        printf("instead of %s%s", wanted, *line ? line : "no line\n");
    check(whole, what);
}

/* perfkit waits in its main loop, done with what a signal asked of it. (Where the system call of
 * another process is not shown, time must do.) */
static int waits(pid_t job)
{
    char path[64], text[64] = "";
    snprintf(path, sizeof path, "/proc/%d/syscall", job);
    FILE *in = fopen(path, "re");
    char *got = in ? fgets(text, sizeof text, in) : NULL;
    if (in)
        fclose(in);
    if (!got) {
        nanosleep(&(struct timespec){.tv_nsec = 300000000}, NULL);
        return 1;
    }
    return isdigit((unsigned char)*text) && atoi(text) == SYS_ppoll;
}

/* The session leader: a shell with one job. */
static int shell(char **argv, int reply)
{
    signal(SIGTTOU, SIG_IGN);
    pid_t job = fork();
    if (job == 0) {
        setpgid(0, 0);
        tcsetpgrp(0, getpgrp());
        signal(SIGTTOU, SIG_DFL);
        dup2(reply, 1);
        execvp(argv[0], argv);
        _exit(127);
    }
    setpgid(job, job);
    tcsetpgrp(0, job);
    return job;
}

static void play(int terminal, pid_t job, pid_t target, FILE *program)
{
    check(write(terminal, "\003", 1) == 1, "type ^C");
    expect(program, "INT 1\n", "one ^C is one SIGINT");
    check(write(terminal, "\032", 1) == 1, "type ^Z");
    await(job, 1, "the job stops at ^Z");
    check(state_of(target) == 'T', "the program is stopped");
    kill(-job, SIGCONT); /* fg */
    expect(program, "CONT 1\n", "the program continues with the job");
    UNTIL(waits(job));
    kill(target, SIGSTOP); /* somebody stops the program alone: the shell must learn it */
    await(job, 1, "the job stops with its program");
    kill(job, SIGCONT); /* to perfkit alone */
    expect(program, "CONT 2\n", "the program continues when perfkit does");
    kill(target, SIGSTOP); /* and continues it alone */
    await(job, 1, "the job stops with its program again");
    kill(target, SIGCONT);
    expect(program, "CONT 3\n", "three continues are three SIGCONT");
    UNTIL(state_of(job) != 'T');
    check(state_of(job) != 'T', "the job continues with its program");
    kill(job, SIGTERM);
    expect(program, "TERM 1\n", "the program gets one SIGTERM, and nothing else");
    int status = await(job, 0, "the job ends");
    check(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the job's status is the program's");
    check(fgetc(program) == EOF, "the program says no more");
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    char *command[] = {argv[1], "run",   "-q",      "-f",  "-o", "terminal.sqlite",
                       "--",    argv[2], "signals", "600", NULL};
    int master, slave, replies[2];
    if (openpty(&master, &slave, NULL, NULL, NULL) < 0 || pipe(replies) < 0) {
        printf("no pseudo terminal here\n");
        return 77;
    }
    pid_t leader = fork();
    if (leader == 0) {
        setsid();
        ioctl(slave, TIOCSCTTY, 0);
        for (int fd = 0; fd <= 2; fd++)
            dup2(slave, fd);
        pid_t job = shell(command, replies[1]);
        close(replies[1]);
        FILE *in = fdopen(replies[0], "r");
        char line[256] = "";
        int pid = 0;
        if (!in || !fgets(line, sizeof line, in) || sscanf(line, "ready %d", &pid) != 1)
            _exit(3);
        /* What failed is kept in the status: stdout is the terminal here. */
        play(master, job, pid, in);
        fflush(stdout);
        _exit(failures ? 1 : 0);
    }
    close(slave);
    close(replies[1]);
    char text[4096];
    int status;
    ssize_t got;
    /* Ends with EIO once the leader is gone. */
    while ((got = read(master, text, sizeof text)) > 0)
        if (write(STDOUT_FILENO, text, (size_t)got) < 0)
            break;
    waitpid(leader, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
