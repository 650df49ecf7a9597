// Every way to start a child, from bound threads: it sees what the user gave.
#include "support/threads_fixture.h"

namespace numalloc {
namespace {

// What a child sees that knows nothing of us.
std::string list_of(const std::vector<int>& cpus) {
    std::string text;
    for (std::size_t i = 0; i < cpus.size(); ++i) text += (i ? " " : "") + std::to_string(cpus[i]);
    return text;
}
constexpr const char* script = "import os; print(*sorted(os.sched_getaffinity(0)))";
std::string read_all(FILE* stream) {
    char text[512] = {};
    const std::size_t n = fread(text, 1, sizeof text - 1, stream);
    return std::string(text, n > 0 && text[n - 1] == '\n' ? n - 1 : n);
}
template <class Start>
std::string output_of(Start start) {
    int ends[2];
    EXPECT_EQ(pipe(ends), 0);
    const pid_t child = start(ends[1]);
    close(ends[1]);
    FILE* stream = fdopen(ends[0], "r");
    const std::string text = read_all(stream);
    fclose(stream);
    if (child > 0) waitpid(child, nullptr, 0);
    return text;
}

void children_see_the_users_mask() {
    const std::vector<int> bound = in_kernel();
    char python[] = "python3", dash_c[] = "-c";
    char* argv[] = {python, dash_c, const_cast<char*>(script), nullptr};
    const auto after_fork = [&](auto exec) {
        return output_of([&](int out) {
            const pid_t child = fork();
            if (child == 0) {
                dup2(out, 1);
                exec();
                _exit(1);
            }
            return child;
        });
    };
    EXPECT_EQ(after_fork([&] { execvp("python3", argv); }), list_of(all));
    EXPECT_EQ(after_fork([&] { execvpe("python3", argv, environ); }), list_of(all));
    EXPECT_EQ(after_fork([&] { execv("/usr/bin/python3", argv); }), list_of(all));
    EXPECT_EQ(after_fork([&] { execve("/usr/bin/python3", argv, environ); }), list_of(all));
    EXPECT_EQ(after_fork([&] { execl("/usr/bin/python3", "python3", "-c", script, nullptr); }), list_of(all));
    EXPECT_EQ(after_fork([&] { execlp("python3", "python3", "-c", script, nullptr); }), list_of(all));
    EXPECT_EQ(after_fork([&] { execle("/usr/bin/python3", "python3", "-c", script, nullptr, environ); }), list_of(all));
    EXPECT_EQ(output_of([&](int out) {
                  const pid_t child = vfork();
                  if (child == 0) {
                      dup2(out, 1);
                      execve("/nowhere/at/all", argv, environ);
                      execve("/usr/bin/python3", argv, environ);
                      _exit(1);
                  }
                  return child;
              }),
              list_of(all));
    EXPECT_EQ(output_of([&](int out) {
                  posix_spawn_file_actions_t actions;
                  posix_spawn_file_actions_init(&actions);
                  posix_spawn_file_actions_adddup2(&actions, out, 1);
                  pid_t child = -1;
                  posix_spawnp(&child, "python3", &actions, nullptr, argv, environ);
                  posix_spawn_file_actions_destroy(&actions);
                  return child;
              }),
              list_of(all));
    EXPECT_EQ(after_fork([&] { execveat(AT_FDCWD, "/usr/bin/python3", argv, environ, 0); }), list_of(all));
    EXPECT_EQ(after_fork([&] { fexecve(open("/usr/bin/python3", O_RDONLY), argv, environ); }), list_of(all));
    EXPECT_EQ(after_fork([&] { syscall(SYS_execve, "/usr/bin/python3", argv, environ); }), list_of(all));
    EXPECT_EQ(after_fork([&] { syscall(SYS_execveat, AT_FDCWD, "/usr/bin/python3", argv, environ, 0); }), list_of(all));
    wordexp_t words;
    ASSERT_EQ(wordexp((std::string("$(python3 -c '") + script + "')").c_str(), &words, 0), 0);
    EXPECT_EQ(words.we_wordc, all.size());
    wordfree(&words);
    FILE* pipe = popen((std::string("python3 -c '") + script + "'").c_str(), "r");
    EXPECT_EQ(read_all(pipe), list_of(all));
    pclose(pipe);
    EXPECT_EQ(system("test \"$(nproc)\" -gt 1"), 0);
    EXPECT_EQ(in_kernel(), bound) << "and the thread itself is bound as before";
}

TEST_F(Threads, ChildrenSeeTheUsersMaskFromMain) { children_see_the_users_mask(); }
TEST_F(Threads, ChildrenSeeTheUsersMaskFromAThread) { std::thread(children_see_the_users_mask).join(); }

TEST_F(Threads, AForkedChildIsAloneAndBindsItsOwnThreads) {
    std::atomic<bool> stop{false};
    std::thread bystander([&] {
        while (!stop) usleep(100);
    });
    const std::vector<int> bound = in_kernel();
    const pid_t child = fork();
    if (child == 0) {
        bool good = in_kernel() == all && seen() == all;
        std::vector<int> kernel;
        std::thread([&] {
            kernel = in_kernel();
            good = good && seen() == all;
        }).join();
        good = good && kernel.size() == 1 && in_kernel().size() == 1 && in_kernel() != kernel;
        const pid_t grandchild = fork();
        if (grandchild == 0) _exit(in_kernel() == all ? 0 : 1);
        int status = 1;
        waitpid(grandchild, &status, 0);
        _exit(good && status == 0 ? 0 : 1);
    }
    int status = 1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
    EXPECT_EQ(in_kernel(), bound);
    stop = true;
    bystander.join();
}

TEST_F(Threads, AFailedExecReturnsBound) {
    const std::vector<int> bound = in_kernel();
    char name[] = "x";
    char* argv[] = {name, nullptr};
    setenv("PATH", "/usr/bin:/bin", 1);  // a folder that this user may not read would make it EACCES
    EXPECT_EQ(execv("/nowhere/x", argv), -1);
    EXPECT_EQ(errno, ENOENT);
    EXPECT_EQ(execvp("no-such-program-anywhere", argv), -1);
    EXPECT_EQ(errno, ENOENT);
    EXPECT_EQ(execvp("", argv), -1);
    EXPECT_EQ(errno, ENOENT);
    setenv("PATH", "/usr/bin:/etc/passwd", 1);
    EXPECT_EQ(execvp("no-such-program-anywhere", argv), -1);
    EXPECT_EQ(errno, ENOTDIR) << "of the last folder";
    EXPECT_EQ(execv("/etc", argv), -1);
    EXPECT_EQ(errno, EACCES);
    EXPECT_EQ(in_kernel(), bound);
}

TEST_F(Threads, AScriptWithoutAFirstLineGoesToTheShell) {
    char path[] = "/tmp/numalloc-script-XXXXXX";
    const int fd = mkstemp(path);
    ASSERT_GE(fd, 0);
    ASSERT_EQ(write(fd, "echo \"$1-$2\"\n", 13), 13);
    fchmod(fd, 0700);
    close(fd);
    EXPECT_EQ(output_of([&](int out) {
                  const pid_t child = fork();
                  if (child == 0) {
                      dup2(out, 1);
                      execlp(path, path, "a", "b", nullptr);
                      _exit(1);
                  }
                  return child;
              }),
              "a-b");
    unlink(path);
}

}  // namespace
}  // namespace numalloc
