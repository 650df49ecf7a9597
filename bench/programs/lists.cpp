// Linked lists that grow in random turn, lose half of their nodes and grow again; after each step all
// of them are walked. How near the nodes of a list lie to one another is the allocator's doing.
#include <new>
#include <vector>

#include "support/command.h"
#include "support/object.h"
#include "support/random.h"
#include "support/threads.h"

namespace {

struct Node {
    Node* next;
    std::uint64_t value;
    std::uint64_t more[2];
};

class List {
public:
    void push(std::uint64_t value) {
        head_ = new (bench::checked(::operator new(sizeof(Node)), sizeof(Node))) Node{head_, value, {value, ~value}};
        sum_ += value;
    }
    void drop_every_other() {
        for (Node** at = &head_; *at != nullptr && (*at)->next != nullptr; at = &(*at)->next) {
            Node* const gone = (*at)->next;
            sum_ -= gone->value;
            (*at)->next = gone->next;
            delete gone;
        }
    }
    void add_to(bench::PageList& pages) const {
        for (const Node* node = head_; node != nullptr; node = node->next) pages.add(node, sizeof *node);
    }
    void clear() {
        while (head_ != nullptr) {
            Node* const gone = head_;
            head_ = gone->next;
            delete gone;
        }
        sum_ = 0;
    }
    void walk() const {
        std::uint64_t sum = 0;
        for (const Node* node = head_; node != nullptr; node = node->next) {
            if (node->more[0] != node->value || node->more[1] != ~node->value)
                bench::fail("a node at %p was overwritten", static_cast<const void*>(node));
            sum += node->value;
        }
        if (sum != sum_) bench::fail("a list has lost nodes");
    }

private:
    Node* head_ = nullptr;
    std::uint64_t sum_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
    bench::Command command(argc, argv);
    const auto& nodes = command.option("nodes", 400'000, "nodes of all threads' lists, at most");
    const auto& lists = command.option("lists", 64, "lists of a thread");
    const auto& steps = command.option("steps", 10, "times the lists are halved and refilled, at scale 1");
    const auto& walks = command.option("walks", 3, "walks after each");
    command.parse();

    const std::uint64_t todo = command.scaled(steps);
    std::vector<std::uint64_t> made(command.threads());
    const double seconds = bench::run_threads(command.threads(), [&](unsigned index) {
        bench::Random random(command.seed(), index);
        std::vector<List> own(lists);
        std::uint64_t grow = bench::share(nodes, index, command.threads());
        const std::uint64_t half = grow / 2;
        for (std::uint64_t step = 0; step < todo; ++step) {
            for (std::uint64_t i = 0; i < grow; ++i) own[random.below(lists)].push(random.next());
            made[index] += grow;
            grow = half;
            for (std::uint64_t walk = 0; walk < walks; ++walk) {
                for (const List& list : own) list.walk();
            }
            for (List& list : own) list.drop_every_other();
        }
        bench::PageList pages(command.pages());
        for (const List& list : own) list.add_to(pages);
        pages.count();
        for (List& list : own) {
            list.walk();
            list.clear();
        }
    });
    std::uint64_t operations = 0;
    for (const std::uint64_t count : made) operations += 2 * count;
    return command.report({.operations = operations, .seconds = seconds, .requested_bytes = nodes * sizeof(Node)});
}
