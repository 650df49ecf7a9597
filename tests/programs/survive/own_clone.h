#pragma once

struct node {
    long value;
    struct node* next;
};

double clone(const struct node* list, double factor, struct node** result, long a, long b, long c, long d, long e);
