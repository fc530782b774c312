/* What an API process does to every claim's bytes, in C: reading a plain request, taking a token apart, spelling ids.

   Each of these has a twin in Python (web/plain_request.py, web/token_shortcut.py, domain/public_id.py), which runs where
   this is not compiled, and gives the same result for the same bytes: tests/native compares the two. Nothing here decides
   anything: signatures are computed and compared elsewhere.

   Bytes go in, bytes come out. Nothing is kept between two calls but the names of headers that a reader was made with. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <string.h>

#ifndef SOURCE
#error "SOURCE is to be defined as the digest of this file: see build.py"
#endif

enum { REQUEST_BYTES_MAX = 8 * 1024, HEADERS_MAX = 64, NAMES_MAX = 32, SALE_ID_MAX = 32, LENGTH_MAX = 1023 };

/* Classes of characters. */
enum { ALNUM = 1, NAME = 2, VISIBLE = 4 };
static unsigned char classes[256];
static signed char base64url[256];    /* its value, or -1 */
static const char ALPHABET[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"; /* Crockford's base32 */

static void prepare_tables(void) {
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    for (int c = '!'; c <= '~'; c++) classes[c] |= VISIBLE;
    memset(base64url, -1, sizeof base64url);
    for (int i = 0; i < 64; i++) {
        base64url[(unsigned char)letters[i]] = (signed char)i;
        classes[(unsigned char)letters[i]] |= i < 62 ? ALNUM | NAME : NAME;
    }
}

static inline unsigned char lower(unsigned char c) { return c >= 'A' && c <= 'Z' ? c | 0x20 : c; }

static int same_name(const unsigned char *sent, const char *name, Py_ssize_t length) {
    for (Py_ssize_t i = 0; i < length; i++)
        if (lower(sent[i]) != (unsigned char)name[i]) return 0;
    return 1;
}

/* ---- A plain request ---- */

typedef struct {
    PyObject_HEAD
    Py_ssize_t count;                /* of names; those from `unusual` on are for the parser to judge */
    Py_ssize_t unusual;
    PyObject *names[NAMES_MAX];      /* bytes, in lower case */
    Py_ssize_t host, length, connection; /* which of them these are */
} Reader;

static Py_ssize_t place_of(Reader *self, const char *name) {
    for (Py_ssize_t i = 0; i < self->unusual; i++)
        if (strcmp(PyBytes_AS_STRING(self->names[i]), name) == 0) return i;
    return -1;
}

static int reader_add(Reader *self, PyObject *names) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names); i++) {
        PyObject *name = PyTuple_GET_ITEM(names, i);
        if (!PyBytes_Check(name) || self->count >= NAMES_MAX) {
            PyErr_Format(PyExc_ValueError, "at most %d names, as bytes", NAMES_MAX);
            return -1;
        }
        self->names[self->count++] = Py_NewRef(name);
    }
    return 0;
}

static PyObject *reader_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    PyObject *notable, *unusual;
    if (!PyArg_ParseTuple(args, "O!O!", &PyTuple_Type, &notable, &PyTuple_Type, &unusual)) return NULL;
    Reader *self = (Reader *)type->tp_alloc(type, 0);
    if (self == NULL) return NULL;
    if (reader_add(self, notable) < 0) goto failed;
    self->unusual = self->count;
    if (reader_add(self, unusual) < 0) goto failed;
    self->host = place_of(self, "host");
    self->length = place_of(self, "content-length");
    self->connection = place_of(self, "connection");
    if (self->host < 0 || self->length < 0 || self->connection < 0) {
        PyErr_SetString(PyExc_ValueError, "host, content-length and connection must be among the notable names");
        goto failed;
    }
    return (PyObject *)self;
failed:
    Py_DECREF(self);
    return NULL;
}

static void reader_dealloc(Reader *self) {
    for (Py_ssize_t i = 0; i < self->count; i++) Py_XDECREF(self->names[i]);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

typedef struct {
    const unsigned char *at;
    Py_ssize_t size;
} Span;

/* A number as it is spelled without zeros before it, up to LENGTH_MAX, or -1. */
static Py_ssize_t length_in(Span text) {
    if (text.size < 1 || text.size > 4 || (text.at[0] == '0' && text.size > 1)) return -1;
    Py_ssize_t value = 0;
    for (Py_ssize_t i = 0; i < text.size; i++) {
        if (text.at[i] < '0' || text.at[i] > '9') return -1;
        value = value * 10 + (text.at[i] - '0');
    }
    return value <= LENGTH_MAX ? value : -1;
}

/* Reads one line of headers behind its "\r\n" and returns what follows it, or NULL if it is not plain. */
static const unsigned char *read_line(const unsigned char *at, const unsigned char *end, Span *name, Span *value) {
    name->at = at;
    while (at < end && (classes[*at] & NAME)) at++;
    name->size = at - name->at;
    if (name->size == 0 || end - at < 3 || at[0] != ':' || at[1] != ' ' || at[2] == ' ') return NULL;
    value->at = at += 2;
    while (at < end && ((classes[*at] & VISIBLE) || *at == ' ')) at++;
    value->size = at - value->at;
    return value->size == 0 || at[-1] == ' ' ? NULL : at;
}

static PyObject *bytes_of(Span span) { return PyBytes_FromStringAndSize((const char *)span.at, span.size); }

static PyObject *headers_of(Reader *self, const Span *values) {
    PyObject *headers = PyDict_New();
    for (Py_ssize_t i = 0; headers != NULL && i < self->unusual; i++) {
        if (values[i].at == NULL) continue;
        PyObject *value = bytes_of(values[i]);
        if (value == NULL || PyDict_SetItem(headers, self->names[i], value) < 0) Py_CLEAR(headers);
        Py_XDECREF(value);
    }
    return headers;
}

static PyObject *reader_read(Reader *self, PyObject *data) {
    static const char BEGIN[] = "POST /v1/sales/", VERSION[] = " HTTP/1.1";
    if (!PyBytes_Check(data)) return PyErr_Format(PyExc_TypeError, "bytes are read");
    const unsigned char *at = (const unsigned char *)PyBytes_AS_STRING(data), *end = at + PyBytes_GET_SIZE(data);
    if (end - at > REQUEST_BYTES_MAX || end - at < (Py_ssize_t)sizeof BEGIN || memcmp(at, BEGIN, sizeof BEGIN - 1) != 0)
        Py_RETURN_NONE;
    at += sizeof BEGIN - 1;
    Span sale_id = {at, 0}, what = {NULL, 0}, values[NAMES_MAX];
    while (at < end && (classes[*at] & ALNUM)) at++;
    sale_id.size = at - sale_id.at;
    if (sale_id.size < 1 || sale_id.size > SALE_ID_MAX || at >= end || *at++ != '/') Py_RETURN_NONE;
    what.at = at;
    if (end - at > 6 && memcmp(at, "orders", 6) == 0) what.size = 6;
    else if (end - at > 7 && memcmp(at, "entries", 7) == 0) what.size = 7;
    else Py_RETURN_NONE;
    at += what.size;
    if (end - at < (Py_ssize_t)sizeof VERSION || memcmp(at, VERSION, sizeof VERSION - 1) != 0) Py_RETURN_NONE;
    at += sizeof VERSION - 1;

    memset(values, 0, sizeof values);
    Py_ssize_t lines = 0;
    for (;;) {
        if (end - at < 2 || at[0] != '\r' || at[1] != '\n') Py_RETURN_NONE;
        at += 2;
        if (lines > 0 && end - at >= 2 && at[0] == '\r' && at[1] == '\n') break;
        Span name, value;
        at = read_line(at, end, &name, &value);
        if (at == NULL || ++lines > HEADERS_MAX) Py_RETURN_NONE;
        for (Py_ssize_t i = 0; i < self->count; i++) {
            if (PyBytes_GET_SIZE(self->names[i]) != name.size) continue;
            if (!same_name(name.at, PyBytes_AS_STRING(self->names[i]), name.size)) continue;
            if (i >= self->unusual || values[i].at != NULL) Py_RETURN_NONE; /* or it is there twice */
            values[i] = value;
            break;
        }
    }
    Span body = {at + 2, end - at - 2};
    Py_ssize_t length = values[self->length].at == NULL ? 0 : length_in(values[self->length]);
    if (length != body.size || values[self->host].at == NULL) Py_RETURN_NONE;
    Span connection = values[self->connection];
    if (connection.at != NULL && (connection.size != 10 || !same_name(connection.at, "keep-alive", 10))) Py_RETURN_NONE;

    PyObject *headers = headers_of(self, values);
    if (headers == NULL) return NULL;
    return Py_BuildValue("(y#y#Ny#)", sale_id.at, sale_id.size, what.at, what.size, headers, body.at, body.size);
}

static PyMethodDef reader_methods[] = {
    {"read", (PyCFunction)reader_read, METH_O, "The parts of a plain request, or None."},
    {NULL, NULL, 0, NULL},
};

static PyTypeObject ReaderType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "seckill.native.kernel.PlainReader",
    .tp_basicsize = sizeof(Reader),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = reader_new,
    .tp_dealloc = (destructor)reader_dealloc,
    .tp_methods = reader_methods,
};

/* ---- A token ---- */

/* Decodes base64url without padding into `out`, which has room for it. The number of bytes, or -1: there is another
   character in it, or a bit that belongs to no byte. */
static Py_ssize_t decode_base64url(Span text, unsigned char *out) {
    Py_ssize_t size = 0, rest = text.size % 4;
    unsigned int bits = 0;
    if (rest == 1) return -1;
    for (Py_ssize_t i = 0; i < text.size; i++) {
        int value = base64url[text.at[i]];
        if (value < 0) return -1;
        bits = bits << 6 | (unsigned int)value;
        if (i % 4 != 0) out[size++] = (unsigned char)(bits >> (6 - 2 * (i % 4)));
    }
    if ((rest == 2 && (bits & 15)) || (rest == 3 && (bits & 3))) return -1;
    return size;
}

static PyObject *open_token(PyObject *module, PyObject *token) {
    enum { TOKEN_BYTES_MAX = 4096, DIGEST_BYTES = 32, DIGEST_LETTERS = 43 };
    if (!PyBytes_Check(token)) return PyErr_Format(PyExc_TypeError, "bytes are read");
    const unsigned char *text = (const unsigned char *)PyBytes_AS_STRING(token);
    Py_ssize_t size = PyBytes_GET_SIZE(token);
    if (size > TOKEN_BYTES_MAX || size <= DIGEST_LETTERS || text[size - DIGEST_LETTERS - 1] != '.') Py_RETURN_NONE;
    Span signed_part = {text, size - DIGEST_LETTERS - 1}, signature = {text + signed_part.size + 1, DIGEST_LETTERS};
    const unsigned char *dot = memchr(text, '.', (size_t)signed_part.size);
    if (dot == NULL) Py_RETURN_NONE;
    Span header = {text, dot - text}, payload = {dot + 1, signed_part.size - (dot - text) - 1};
    unsigned char digest[DIGEST_BYTES + 1], claims[TOKEN_BYTES_MAX];
    Py_ssize_t claims_size = decode_base64url(payload, claims);
    if (claims_size < 1 || decode_base64url(signature, digest) != DIGEST_BYTES) Py_RETURN_NONE;
    PyObject *decoded = PyUnicode_DecodeUTF8((const char *)claims, claims_size, NULL);
    if (decoded == NULL) {
        if (!PyErr_ExceptionMatches(PyExc_UnicodeDecodeError)) return NULL;
        PyErr_Clear();
        Py_RETURN_NONE;
    }
    return Py_BuildValue("(y#y#y#N)", header.at, header.size, signed_part.at, signed_part.size, digest,
                         (Py_ssize_t)DIGEST_BYTES, decoded);
}

/* ---- Public ids ---- */

/* Of numbers that stand in the first eight of each sixteen bytes, lowest byte first. */
static PyObject *spell_ids(PyObject *module, PyObject *blocks) {
    enum { BLOCK_BYTES = 16, LENGTH = 13 };
    if (!PyBytes_Check(blocks)) return PyErr_Format(PyExc_TypeError, "bytes are read");
    const unsigned char *at = (const unsigned char *)PyBytes_AS_STRING(blocks);
    Py_ssize_t count = PyBytes_GET_SIZE(blocks) / BLOCK_BYTES;
    PyObject *ids = PyList_New(count);
    for (Py_ssize_t i = 0; ids != NULL && i < count; i++, at += BLOCK_BYTES) {
        unsigned long long number = 0;
        for (int byte = 7; byte >= 0; byte--) number = number << 8 | at[byte];
        PyObject *id = PyUnicode_New(LENGTH, 127);
        if (id == NULL) {
            Py_CLEAR(ids);
            break;
        }
        for (int place = LENGTH - 1; place >= 0; place--, number >>= 5)
            PyUnicode_1BYTE_DATA(id)[place] = (Py_UCS1)ALPHABET[number & 31];
        PyList_SET_ITEM(ids, i, id);
    }
    return ids;
}

static PyMethodDef methods[] = {
    {"open_token", open_token, METH_O, "Header, what is signed, signature and claims of a token, or None."},
    {"spell_ids", spell_ids, METH_O, "As public ids are written."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, .m_name = "seckill.native.kernel", .m_size = -1, .m_methods = methods,
};

PyMODINIT_FUNC PyInit_kernel(void) {
    prepare_tables();
    PyObject *module = PyModule_Create(&definition);
    if (module == NULL || PyModule_AddType(module, &ReaderType) < 0 ||
        PyModule_AddStringConstant(module, "SOURCE", SOURCE) < 0)
        Py_CLEAR(module);
    return module;
}
