/* Sends many answers with one call of the system (io_uring, Linux), each over a connection of its own.

   A client or proxy on this machine that waits for an answer is woken by it, and where cores are few it then runs in the
   place of the process that has just sent it, once for each answer. Answers that are sent in one call wake it once.

   Nothing is decided here, and nothing is under way between two calls: each send says MSG_DONTWAIT, so it has ended, one way or
   the other, when it was submitted. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#if defined(__linux__) && defined(__has_include)
#if __has_include(<linux/io_uring.h>)
#include <linux/io_uring.h>
#include <sys/syscall.h>
/* Headers of before 5.7 do not know what is used here. */
#if defined(IORING_FEAT_FAST_POLL) && defined(__NR_io_uring_setup) && defined(__NR_io_uring_enter)
#define HAS_RING
#endif
#endif
#endif

int add_ring(PyObject *module);

#ifndef HAS_RING

int add_ring(PyObject *module) { return 0; }

#else

#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

enum { ENTRIES_MAX = 4096 };

typedef struct {
    PyObject_HEAD
    int descriptor;
    unsigned entries; /* how many sends fit into one call */
    void *shared;     /* both queues, as the system shares them with us */
    size_t shared_bytes;
    struct io_uring_sqe *sends;
    size_t sends_bytes;
    unsigned *head, *tail, *mask, *places;                    /* of what is submitted */
    unsigned *done_head, *done_tail, *done_mask;              /* of what has ended */
    struct io_uring_cqe *done;
} Ring;

static void ring_dealloc(Ring *self) {
    if (self->sends != NULL) munmap(self->sends, self->sends_bytes);
    if (self->shared != NULL) munmap(self->shared, self->shared_bytes);
    if (self->descriptor >= 0) close(self->descriptor);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

static void *map(int descriptor, size_t bytes, off_t what) {
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, descriptor, what);
    if (at == MAP_FAILED) return NULL;
    madvise(at, bytes, MADV_DONTFORK); /* a copy of this process must not submit into its ring */
    return at;
}

static int set_up(Ring *self, unsigned entries) {
    struct io_uring_params given;
    memset(&given, 0, sizeof given);
    self->descriptor = (int)syscall(__NR_io_uring_setup, entries, &given);
    if (self->descriptor < 0) return -1;
    /* A kernel without both is older than 5.7, and may not know how to send. */
    if (!(given.features & IORING_FEAT_SINGLE_MMAP) || !(given.features & IORING_FEAT_FAST_POLL)) {
        errno = ENOSYS;
        return -1;
    }
    size_t submitted_bytes = given.sq_off.array + given.sq_entries * sizeof(unsigned);
    size_t ended_bytes = given.cq_off.cqes + given.cq_entries * sizeof(struct io_uring_cqe);
    self->entries = given.sq_entries;
    self->shared_bytes = submitted_bytes > ended_bytes ? submitted_bytes : ended_bytes;
    self->sends_bytes = given.sq_entries * sizeof(struct io_uring_sqe);
    self->shared = map(self->descriptor, self->shared_bytes, IORING_OFF_SQ_RING);
    self->sends = map(self->descriptor, self->sends_bytes, IORING_OFF_SQES);
    if (self->shared == NULL || self->sends == NULL) return -1;
    char *at = self->shared;
    self->head = (unsigned *)(at + given.sq_off.head);
    self->tail = (unsigned *)(at + given.sq_off.tail);
    self->mask = (unsigned *)(at + given.sq_off.ring_mask);
    self->places = (unsigned *)(at + given.sq_off.array);
    self->done_head = (unsigned *)(at + given.cq_off.head);
    self->done_tail = (unsigned *)(at + given.cq_off.tail);
    self->done_mask = (unsigned *)(at + given.cq_off.ring_mask);
    self->done = (struct io_uring_cqe *)(at + given.cq_off.cqes);
    return 0;
}

static PyObject *ring_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    unsigned entries;
    if (!PyArg_ParseTuple(args, "I", &entries)) return NULL;
    if (entries < 1 || entries > ENTRIES_MAX) {
        PyErr_Format(PyExc_ValueError, "a ring has 1 to %d entries", ENTRIES_MAX);
        return NULL;
    }
    Ring *self = (Ring *)type->tp_alloc(type, 0);
    if (self == NULL) return NULL;
    self->descriptor = -1;
    if (set_up(self, entries) < 0) {
        PyErr_SetFromErrno(PyExc_OSError);
        Py_CLEAR(self);
    }
    return (PyObject *)self;
}

static void put(Ring *self, unsigned at, int descriptor, PyObject *answer, unsigned number) {
    unsigned place = at & *self->mask;
    struct io_uring_sqe *send = &self->sends[place];
    memset(send, 0, sizeof *send);
    send->opcode = IORING_OP_SEND;
    send->fd = descriptor;
    send->addr = (uintptr_t)PyBytes_AS_STRING(answer);
    send->len = (uint32_t)PyBytes_GET_SIZE(answer);
    send->msg_flags = MSG_DONTWAIT | MSG_NOSIGNAL;
    send->user_data = number;
    self->places[place] = place;
}

/* Takes the results of what has ended, and returns how many there were. */
static unsigned take(Ring *self, int *results, unsigned count) {
    unsigned head = *self->done_head, tail = __atomic_load_n(self->done_tail, __ATOMIC_ACQUIRE), found = tail - head;
    for (; head != tail; head++) {
        struct io_uring_cqe *ended = &self->done[head & *self->done_mask];
        if (ended->user_data < count) results[ended->user_data] = ended->res;
    }
    __atomic_store_n(self->done_head, head, __ATOMIC_RELEASE);
    return found;
}

static int enter(Ring *self, unsigned submitted, unsigned awaited) {
    unsigned flags = awaited ? IORING_ENTER_GETEVENTS : 0;
    return (int)syscall(__NR_io_uring_enter, self->descriptor, submitted, awaited, flags, NULL, (size_t)0);
}

/* Sends that many answers; for each, a number of bytes or a negative error. What could not be submitted was not sent. Returns
   -1 if it is not known which were. */
static int submit(Ring *self, unsigned count, int *results) {
    for (unsigned i = 0; i < count; i++) results[i] = -EAGAIN;
    int submitted = enter(self, count, 0);
    if (submitted < (int)count) __atomic_store_n(self->tail, __atomic_load_n(self->head, __ATOMIC_ACQUIRE), __ATOMIC_RELEASE);
    if (submitted <= 0) return 0;
    unsigned taken = take(self, results, count);
    while (taken < (unsigned)submitted) { /* none should be under way any more */
        if (enter(self, 0, 1) < 0 && errno != EINTR) return -1;
        taken += take(self, results, count);
    }
    return 0;
}

/* send(descriptors, answers), two lists: None if each was sent whole, otherwise (index, result) of those that were not. */
static PyObject *ring_send(Ring *self, PyObject *args) {
    PyObject *descriptors, *answers;
    if (!PyArg_ParseTuple(args, "O!O!", &PyList_Type, &descriptors, &PyList_Type, &answers)) return NULL;
    Py_ssize_t all = PyList_GET_SIZE(answers);
    if (PyList_GET_SIZE(descriptors) != all) {
        PyErr_SetString(PyExc_ValueError, "each answer has one descriptor");
        return NULL;
    }
    for (Py_ssize_t i = 0; i < all; i++) {
        PyObject *answer = PyList_GET_ITEM(answers, i), *descriptor = PyList_GET_ITEM(descriptors, i);
        if (!PyBytes_CheckExact(answer) || !PyLong_CheckExact(descriptor) || PyBytes_GET_SIZE(answer) > INT32_MAX) {
            PyErr_SetString(PyExc_TypeError, "descriptors are numbers, and answers bytes");
            return NULL;
        }
        long number = PyLong_AsLong(descriptor);
        if (number == -1 && PyErr_Occurred()) return NULL;
        if (number < 0 || number > INT_MAX) {
            PyErr_SetString(PyExc_ValueError, "there is no such descriptor");
            return NULL;
        }
    }
    int results[ENTRIES_MAX];
    PyObject *rest = NULL;
    for (Py_ssize_t start = 0; start < all;) {
        unsigned count = all - start < (Py_ssize_t)self->entries ? (unsigned)(all - start) : self->entries;
        unsigned tail = *self->tail;
        for (unsigned i = 0; i < count; i++) {
            int descriptor = (int)PyLong_AsLong(PyList_GET_ITEM(descriptors, start + i));
            put(self, tail + i, descriptor, PyList_GET_ITEM(answers, start + i), i);
        }
        __atomic_store_n(self->tail, tail + count, __ATOMIC_RELEASE);
        if (submit(self, count, results) < 0) {
            /* The system may still read them, so they stay for good. */
            for (unsigned i = 0; i < count; i++) Py_INCREF(PyList_GET_ITEM(answers, start + i));
            PyErr_SetFromErrno(PyExc_OSError);
            goto failed;
        }
        for (unsigned i = 0; i < count; i++) {
            if (results[i] == (int)PyBytes_GET_SIZE(PyList_GET_ITEM(answers, start + i))) continue;
            PyObject *pair = Py_BuildValue("ni", start + (Py_ssize_t)i, results[i]);
            if (pair == NULL || (rest == NULL && (rest = PyList_New(0)) == NULL) || PyList_Append(rest, pair) < 0) {
                Py_XDECREF(pair);
                goto failed;
            }
            Py_DECREF(pair);
        }
        start += count;
    }
    if (rest != NULL) return rest;
    Py_RETURN_NONE;
failed:
    Py_XDECREF(rest);
    return NULL;
}

static PyMethodDef ring_methods[] = {
    {"send", (PyCFunction)ring_send, METH_VARARGS, "Sends each of the answers over the connection with this descriptor."},
    {NULL, NULL, 0, NULL},
};

static PyTypeObject RingType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "seckill.native.kernel.Ring",
    .tp_basicsize = sizeof(Ring),
    .tp_dealloc = (destructor)ring_dealloc,
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = ring_new,
    .tp_methods = ring_methods,
};

int add_ring(PyObject *module) { return PyModule_AddType(module, &RingType); }

#endif
