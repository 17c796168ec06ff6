/* Job control on a real (pseudo) terminal: plays the shell. `terminal_test PERFKIT TARGET` starts
 * perfkit as a foreground job, types ^C and ^Z, continues it, and checks what the job and the
 * program saw. Prints what went wrong; exit 0 = all as without perfkit. */
#include <errno.h>
#include <fcntl.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void pause_ms(long ms)
{
    struct timespec pause = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&pause, NULL);
}

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

/* Wait until the job is in the wanted state ('s' stopped, 'e' ended); its wait status. */
static int await(pid_t job, char wanted, const char *what)
{
    int status = -1;
    for (int i = 0; i < 500; i++) {
        if (waitpid(job, &status, WNOHANG | WUNTRACED) == job) {
            check(wanted == 's' ? WIFSTOPPED(status) : !WIFSTOPPED(status), what);
            return status;
        }
        pause_ms(10);
    }
    check(0, what);
    return -1;
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

static void play(int terminal, pid_t job, pid_t target)
{
    check(write(terminal, "\003", 1) == 1, "type ^C"); /* one SIGINT for the program */
    pause_ms(300);
    check(write(terminal, "\032", 1) == 1, "type ^Z");
    await(job, 's', "the job stops at ^Z");
    check(state_of(target) == 'T', "the program is stopped");
    kill(-job, SIGCONT); /* fg */
    pause_ms(300);
    check(state_of(target) != 'T', "the program continues with the job");
    kill(target, SIGSTOP); /* somebody stops the program alone: the shell must learn it */
    await(job, 's', "the job stops with its program");
    kill(job, SIGCONT); /* to perfkit alone */
    pause_ms(300);
    check(state_of(target) != 'T', "the program continues when perfkit does");
    kill(target, SIGSTOP); /* and continues it alone */
    await(job, 's', "the job stops with its program again");
    kill(target, SIGCONT);
    for (int i = 0; i < 500 && state_of(job) == 'T'; i++)
        pause_ms(10);
    check(state_of(job) != 'T', "the job continues with its program");
    kill(job, SIGTERM);
    int status = await(job, 'e', "the job ends");
    check(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the job's status is the program's");
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    char *command[] = {argv[1], "run",   "-q",      "-f", "-o", "terminal.sqlite",
                       "--",    argv[2], "signals", "20", NULL};
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
        play(master, job, pid);
        int interrupts = 0, continues = 0, number;
        char name[32];
        while (fgets(line, sizeof line, in))
            if (sscanf(line, "%31s %d", name, &number) == 2) {
                interrupts += strcmp(name, "INT") == 0 ? number : 0;
                continues += strcmp(name, "CONT") == 0 ? number : 0;
            }
        check(interrupts == 1, "one ^C is one SIGINT");
        check(continues == 3, "three continues are three SIGCONT");
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
