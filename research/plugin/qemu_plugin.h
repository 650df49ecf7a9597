// SPDX-License-Identifier: GPL-2.0-or-later
// What numascope uses of QEMU's interface for plugins, version 4 (QEMU 9.2 and later), written after its
// documentation: Debian has no package with the header. The same for the few names of glib that the interface needs.
#pragma once
#include <cstddef>
#include <cstdint>

extern "C" {

using qemu_plugin_id_t = uint64_t;
using qemu_plugin_meminfo_t = uint32_t;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
struct qemu_plugin_hwaddr;
struct qemu_plugin_register;
struct qemu_plugin_scoreboard;

struct qemu_info_t {
    const char* target_name;
    struct {
        int min, cur;
    } version;
    bool system_emulation;
    union {
        struct {
            int smp_vcpus, max_vcpus;
        } system;
    };
};

struct qemu_plugin_u64 {
    qemu_plugin_scoreboard* score;
    size_t offset;
};

struct qemu_plugin_reg_descriptor {
    qemu_plugin_register* handle;
    const char* name;
    const char* feature;
};

struct GArray {
    char* data;
    unsigned len;
};
struct GByteArray {
    uint8_t* data;
    unsigned len;
};
GByteArray* g_byte_array_new();
GByteArray* g_byte_array_set_size(GByteArray*, unsigned);
char* g_array_free(GArray*, int free_segment);

enum qemu_plugin_cb_flags { QEMU_PLUGIN_CB_NO_REGS, QEMU_PLUGIN_CB_R_REGS, QEMU_PLUGIN_CB_RW_REGS };
enum qemu_plugin_mem_rw { QEMU_PLUGIN_MEM_R = 1, QEMU_PLUGIN_MEM_W, QEMU_PLUGIN_MEM_RW };
enum qemu_plugin_op { QEMU_PLUGIN_INLINE_ADD_U64, QEMU_PLUGIN_INLINE_STORE_U64 };
enum qemu_plugin_cond {
    QEMU_PLUGIN_COND_NEVER,
    QEMU_PLUGIN_COND_ALWAYS,
    QEMU_PLUGIN_COND_EQ,
    QEMU_PLUGIN_COND_NE,
    QEMU_PLUGIN_COND_LT,
    QEMU_PLUGIN_COND_LE,
    QEMU_PLUGIN_COND_GT,
    QEMU_PLUGIN_COND_GE
};

using qemu_plugin_udata_cb_t = void (*)(qemu_plugin_id_t, void*);
using qemu_plugin_vcpu_simple_cb_t = void (*)(qemu_plugin_id_t, unsigned);
using qemu_plugin_vcpu_udata_cb_t = void (*)(unsigned, void*);
using qemu_plugin_vcpu_tb_trans_cb_t = void (*)(qemu_plugin_id_t, qemu_plugin_tb*);
using qemu_plugin_vcpu_mem_cb_t = void (*)(unsigned, qemu_plugin_meminfo_t, uint64_t, void*);

void qemu_plugin_register_vcpu_init_cb(qemu_plugin_id_t, qemu_plugin_vcpu_simple_cb_t);
void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t, qemu_plugin_vcpu_tb_trans_cb_t);
void qemu_plugin_register_atexit_cb(qemu_plugin_id_t, qemu_plugin_udata_cb_t, void*);
void qemu_plugin_register_vcpu_tb_exec_cond_cb(qemu_plugin_tb*, qemu_plugin_vcpu_udata_cb_t, qemu_plugin_cb_flags,
                                               qemu_plugin_cond, qemu_plugin_u64 entry, uint64_t immediate, void*);
void qemu_plugin_register_vcpu_tb_exec_inline_per_vcpu(qemu_plugin_tb*, qemu_plugin_op, qemu_plugin_u64 entry,
                                                       uint64_t immediate);
void qemu_plugin_register_vcpu_insn_exec_cb(qemu_plugin_insn*, qemu_plugin_vcpu_udata_cb_t, qemu_plugin_cb_flags,
                                            void*);
void qemu_plugin_register_vcpu_mem_cb(qemu_plugin_insn*, qemu_plugin_vcpu_mem_cb_t, qemu_plugin_cb_flags,
                                      qemu_plugin_mem_rw, void*);

size_t qemu_plugin_tb_n_insns(const qemu_plugin_tb*);
uint64_t qemu_plugin_tb_vaddr(const qemu_plugin_tb*);
qemu_plugin_insn* qemu_plugin_tb_get_insn(const qemu_plugin_tb*, size_t);
size_t qemu_plugin_insn_data(const qemu_plugin_insn*, void*, size_t);
size_t qemu_plugin_insn_size(const qemu_plugin_insn*);
uint64_t qemu_plugin_insn_vaddr(const qemu_plugin_insn*);

unsigned qemu_plugin_mem_size_shift(qemu_plugin_meminfo_t);
qemu_plugin_hwaddr* qemu_plugin_get_hwaddr(qemu_plugin_meminfo_t, uint64_t vaddr);
bool qemu_plugin_hwaddr_is_io(const qemu_plugin_hwaddr*);
uint64_t qemu_plugin_hwaddr_phys_addr(const qemu_plugin_hwaddr*);

GArray* qemu_plugin_get_registers();
int qemu_plugin_read_register(qemu_plugin_register*, GByteArray*);
bool qemu_plugin_read_memory_vaddr(uint64_t, GByteArray*, size_t);

qemu_plugin_scoreboard* qemu_plugin_scoreboard_new(size_t element_size);
void* qemu_plugin_scoreboard_find(qemu_plugin_scoreboard*, unsigned vcpu);

const void* qemu_plugin_request_time_control();
void qemu_plugin_update_ns(const void* handle, int64_t time);
void qemu_plugin_outs(const char*);

}  // extern "C"
