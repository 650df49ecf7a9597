"""Linear algebra on threads, transforms, sparse matrices, and many arrays that come and go."""

import threading

import numpy
import scipy.fft
import scipy.optimize
import scipy.sparse
import scipy.sparse.linalg

random = numpy.random.default_rng(1)
square = random.normal(size=(400, 400))
print(f"{numpy.linalg.svd(square, compute_uv=False).sum():.6f}")
print(f"{abs(scipy.fft.fft(random.normal(size=1 << 18))).sum():.3f}")
sparse = scipy.sparse.random(4000, 4000, 0.001, random_state=2, format="csr") + scipy.sparse.eye(4000)
print(f"{scipy.sparse.linalg.spsolve(sparse.tocsc(), numpy.ones(4000)).sum():.6f}")
print(f"{scipy.optimize.minimize(scipy.optimize.rosen, [1.3, 0.7, 0.8, 1.9]).fun:.2e}"[-3:])
sums = [0.0] * 6


def churn(place: int) -> None:
    own = numpy.random.default_rng(place)
    kept = []
    for _step in range(3000):
        kept.append(own.random(int(own.integers(1, 20000))))
        if len(kept) > 50:
            sums[place] += float(kept.pop(int(own.integers(0, 50)))[0])


threads = [threading.Thread(target=churn, args=(place,)) for place in range(6)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print([f"{value:.6f}" for value in sums])
