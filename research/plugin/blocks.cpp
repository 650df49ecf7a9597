// SPDX-License-Identifier: GPL-2.0-or-later
#include "blocks.h"

#include <deque>
#include <utility>

#include "guest.h"

namespace scope {
namespace {

constexpr unsigned BLOCKS_OF_BOARD = 1024;

std::deque<Block> blocks;
qemu_plugin_scoreboard* board;

// What ran since it was asked last.
uint64_t take_runs(Block& block) {
    uint64_t runs = 0;
    for (auto& cpu : vcpus) runs += std::exchange(runs_of(block, cpu->number), 0);
    return runs * block.instructions.size() - std::exchange(block.undone, 0);
}

}  // namespace

Block& new_block(qemu_plugin_tb* tb, size_t count) {
    Block& block = blocks.emplace_back();
    block.start = qemu_plugin_tb_vaddr(tb);
    for (size_t index = 0; index < count; ++index)
        block.instructions.push_back(qemu_plugin_insn_vaddr(qemu_plugin_tb_get_insn(tb, index)));
    block.end = block.instructions.back() + qemu_plugin_insn_size(qemu_plugin_tb_get_insn(tb, count - 1));
    block.index = static_cast<unsigned>((blocks.size() - 1) % BLOCKS_OF_BOARD);
    if (block.index == 0) board = qemu_plugin_scoreboard_new(BLOCKS_OF_BOARD * sizeof(uint64_t));
    block.board = board;
    return block;
}

uint64_t& runs_of(const Block& block, unsigned cpu) {
    return static_cast<uint64_t*>(qemu_plugin_scoreboard_find(block.board, cpu))[block.index];
}

void close_blocks(bool was_open, bool fresh) {
    const std::lock_guard lock(translating);
    for (Block& block : blocks) {
        const uint64_t instructions = take_runs(block);
        if (fresh) block.counted = 0;
        else if (was_open) block.counted += instructions;
    }
}

std::vector<Executed> executed() {
    const std::lock_guard lock(translating);
    std::vector<Executed> found;
    for (const Block& block : blocks)
        if (block.counted) found.push_back({block.start, block.counted});
    return found;
}

}  // namespace scope
