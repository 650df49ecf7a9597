package main

/*
#include <stdlib.h>
#include <string.h>
static void *make(size_t n, int c) { void *p = malloc(n); if (p) memset(p, c, n); return p; }
static int last(char *p, size_t n) { return p[n - 1]; }
*/
import "C"

import (
	"fmt"
	"os/exec"
	"sync"
	"unsafe"
)

// C memory that one goroutine allocates and another frees, on threads that Go makes and drops.
func main() {
	blocks := make(chan unsafe.Pointer, 100)
	var makers, takers sync.WaitGroup
	for g := 0; g < 8; g++ {
		makers.Add(1)
		go func(g int) {
			defer makers.Done()
			for i := 0; i < 5000; i++ {
				n := C.size_t(i*7919%5000 + 1)
				p := C.make(n, C.int(g))
				if C.last((*C.char)(p), n) != C.int(g) {
					panic("another byte")
				}
				blocks <- p
			}
		}(g)
	}
	freed := make([]int, 4)
	for t := 0; t < 4; t++ {
		takers.Add(1)
		go func(t int) {
			defer takers.Done()
			for p := range blocks {
				C.free(p)
				freed[t]++
			}
		}(t)
	}
	makers.Wait()
	close(blocks)
	takers.Wait()
	total := 0
	for _, n := range freed {
		total += n
	}
	words, _ := exec.Command("echo", "child").Output()
	fmt.Println(total, C.GoString(C.CString("copied")), string(words))
}
