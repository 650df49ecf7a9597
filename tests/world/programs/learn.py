"""Trees and neighbours by OpenMP and by worker processes."""

import numpy
from sklearn.cluster import KMeans
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import cross_val_score

if __name__ == "__main__":
    random = numpy.random.default_rng(3)
    points = random.normal(size=(3000, 12))
    kind = (points[:, 0] * points[:, 1] > 0).astype(int)
    print(f"{cross_val_score(RandomForestClassifier(30, random_state=1, n_jobs=1), points, kind, cv=3, n_jobs=2).mean():.6f}")
    print(f"{KMeans(8, n_init=2, random_state=1).fit(points).inertia_:.3f}")
