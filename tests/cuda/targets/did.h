/* What a test program did, added up and printed as one JSON object: device_check.py compares a
 * capture of the program with it. */
#ifndef PERFKIT_TESTS_CUDA_DID_H
#define PERFKIT_TESTS_CUDA_DID_H

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include <dlfcn.h>

#include <cuda.h>
#include <cuda_runtime.h>

static std::string format(const char *text, ...)
{
    char buffer[1024];
    va_list arguments;
    va_start(arguments, text);
    vsnprintf(buffer, sizeof buffer, text, arguments);
    va_end(arguments);
    return buffer;
}

static std::string quoted(const std::string &text)
{
    std::string out = "\"";
    for (char c : text) {
        if (c == '"' || c == '\\')
            out += '\\';
        out += c < ' ' && c >= 0 ? ' ' : c;
    }
    return out + "\"";
}

struct amount {
    long long count, bytes;
};

/* Tables of counts and of amounts by name; the names are those that the capture has. */
class did
{
  public:
    void n(const char *table, const std::string &key, long long more = 1)
    {
        counts_[table][key] += more;
    }
    void amount_of(const char *table, const std::string &key, long long count, long long bytes)
    {
        amount &a = amounts_[table][key];
        a.count += count;
        a.bytes += bytes;
    }
    void has(const char *table, const std::string &text)
    {
        sets_[table].insert(text);
    }
    void skip(const char *mode, const std::string &why)
    {
        texts_["skipped"][mode] = why;
    }

    void print() const
    {
        std::string out = "{";
        for (auto &table : counts_)
            section(out, table.first, table.second, [](long long v) { return format("%lld", v); });
        for (auto &table : amounts_)
            section(out, table.first, table.second,
                    [](const amount &a) { return format("[%lld, %lld]", a.count, a.bytes); });
        for (auto &table : texts_)
            section(out, table.first, table.second, quoted);
        for (auto &table : sets_) {
            std::string list;
            for (auto &text : table.second)
                list += (list.empty() ? "" : ", ") + quoted(text);
            out += (out.size() > 1 ? ",\n " : "") + quoted(table.first) + ": [" + list + "]";
        }
        printf("%s}\n", out.c_str());
    }

  private:
    template <typename V, typename F>
    static void section(std::string &out, const std::string &name,
                        const std::map<std::string, V> &table, F text)
    {
        std::string inside;
        for (auto &row : table)
            inside += (inside.empty() ? "" : ", ") + quoted(row.first) + ": " + text(row.second);
        out += (out.size() > 1 ? ",\n " : "") + quoted(name) + ": {" + inside + "}";
    }

    std::map<std::string, std::map<std::string, long long>> counts_;
    std::map<std::string, std::map<std::string, amount>> amounts_;
    std::map<std::string, std::map<std::string, std::string>> texts_;
    std::map<std::string, std::set<std::string>> sets_;
};

#define CHECK(call)                                                                                \
    do {                                                                                           \
        cudaError_t error_ = (call);                                                               \
        if (error_ != cudaSuccess) {                                                               \
            fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(error_));                        \
            exit(3);                                                                               \
        }                                                                                          \
    } while (0)

#define DRIVER_CHECK(call)                                                                         \
    do {                                                                                           \
        CUresult result_ = (call);                                                                 \
        if (result_ != CUDA_SUCCESS) {                                                             \
            fprintf(stderr, "%s: error %d\n", #call, (int)result_);                                \
            exit(4);                                                                               \
        }                                                                                          \
    } while (0)

/* A function of libcuda, which no program here links: they must build where there is no driver.
 * cuda.h names the newest version of a function by a macro, so its expansion is the symbol. */
static void *driver_symbol(const char *name)
{
    static void *library = dlopen("libcuda.so.1", RTLD_NOW);
    return library ? dlsym(library, name) : NULL;
}
#define DRIVER_TEXT_(name) #name
#define DRIVER_TEXT(name) DRIVER_TEXT_(name)
#define DRIVER_HAS(function) (driver_symbol(DRIVER_TEXT(function)) != NULL)
#define DRIVER(function) ((decltype(&function))driver_symbol(DRIVER_TEXT(function)))

/* PTX of a kernel of one parameter that does nothing. Any device that CUDA 13 knows takes it. */
static std::string ptx_of(const std::string &kernel)
{
    return ".version 6.5\n.target sm_75\n.address_size 64\n.visible .entry " + kernel +
           "(.param .u64 a)\n{\n ret;\n}\n";
}

#endif
