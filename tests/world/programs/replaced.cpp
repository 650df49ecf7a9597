// Replaces the plain operators only: by the standard all other forms come to them.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <string>
#include <vector>

namespace {
constexpr std::size_t before = 64;  // a header, so that a pointer that misses its own delete is found out
long live = 0;
}  // namespace

void* operator new(std::size_t size) {
    char* p = static_cast<char*>(std::malloc(size + before));
    if (p == nullptr) throw std::bad_alloc();
    *reinterpret_cast<unsigned long*>(p) = 0x6e756d61;
    ++live;
    return p + before;
}

void operator delete(void* pointer) noexcept {
    if (pointer == nullptr) return;
    char* p = static_cast<char*>(pointer) - before;
    if (*reinterpret_cast<unsigned long*>(p) != 0x6e756d61) std::abort();
    --live;
    std::free(p);
}

int main() {
    {
        std::vector<std::string> words;
        for (int i = 0; i < 1000; ++i) words.push_back(std::to_string(i * 7919 % 1009) + std::string(40, 'x'));
        std::stable_sort(words.begin(), words.end());  // asks by the nothrow form
        std::printf("%.3s\n", words[0].c_str());
        delete[] new char[100];
        delete new (std::nothrow) long;
        ::operator delete(::operator new(10), std::size_t{10});
    }
    std::printf("live: %ld\n", live);
    return live != 0;
}
