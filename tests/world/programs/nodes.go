package main

// #cgo CFLAGS: -I.
// #include "own_pages.h"
// static struct own all;
// static void *begin(void) { return calloc(1, sizeof(struct own)); }
// static void work(void *own) { allocate_and_compute(own); }
// static void end(void *own) { add_own_pages(own, &all); free(own); }
// static void finish(void) { print_own_pages("goroutines", &all); }
import "C"

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"sync"
	"time"
)

// Goroutines that allocate and compute in C, and children of Go's own way to start them, from threads that C has used.
func main() {
	length, _ := strconv.ParseFloat(os.Args[1], 64)
	fmt.Println("processors:", runtime.NumCPU(), runtime.GOMAXPROCS(0))
	fmt.Println("begin goroutines")
	until := time.Now().Add(time.Duration(length * float64(time.Second)))
	masks := make(chan string, 8)
	var work, group sync.WaitGroup
	for g := 0; g < 8; g++ {
		work.Add(1)
		group.Add(1)
		go func() {
			defer group.Done()
			runtime.LockOSThread()
			own := C.begin()
			for time.Now().Before(until) {
				C.work(own)
			}
			work.Done()
			C.end(own)
			out, err := exec.Command("/bin/grep", "Cpus_allowed_list", "/proc/self/status").CombinedOutput()
			masks <- fmt.Sprint(string(out), err)
		}()
	}
	work.Wait()
	fmt.Println("end")
	group.Wait()
	for g := 0; g < 8; g++ {
		fmt.Println(<-masks)
	}
	C.finish()
}
