// A program that replaces some of operator new and delete itself: its own must win, and those it
// leaves alone must work with them.
#include <new>
#include <string>
#include <vector>

#include "check.h"

static long own_news, own_deletes;

void* operator new(std::size_t n) {
    ++own_news;
    if (void* p = malloc(n == 0 ? 1 : n)) return p;
    throw std::bad_alloc();
}
void operator delete(void* p) noexcept {
    ++own_deletes;
    free(p);
}
void operator delete(void* p, std::size_t) noexcept {
    ++own_deletes;
    free(p);
}

int main() {
    testing_support::require_library();
    {
        std::vector<std::string> texts;
        for (int i = 0; i < 1000; ++i) texts.emplace_back(100, 'b');
        CHECK(texts[999][99] == 'b');
    }
    CHECK(own_news >= 1000 && own_news == own_deletes);
    // Array forms are the library's, and go through the program's.
    const long news_before = own_news;
    for (int i = 0; i < 1000; ++i) {
        char* volatile p = new char[200];
        p[199] = 1;
        delete[] p;
    }
    CHECK(own_news - news_before == 1000 && own_news == own_deletes);
    std::puts("own operators");
}
