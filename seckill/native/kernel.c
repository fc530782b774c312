/* What an API process does to every claim's bytes, in C: reading a plain request, taking a token apart, reading both and
   what they say in one go, making public ids.

   Each of these has a twin in Python, which gives the same result for the same bytes: tests/native compares the two. Where
   this is not compiled, the twins run (web/claims/plain_request.py, web/buyers/token_shortcut.py, domain/public_id.py), and plain claims
   are read part by part. Nothing here decides anything: signatures are computed and compared, and blocks encrypted, elsewhere.

   Bytes go in; bytes, texts and numbers come out. Nothing is kept between two calls but what a reader was made with: the
   names of headers, the issuer and the audience. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <string.h>

#ifndef SOURCE
#error "SOURCE is to be defined as the digest of the sources: see build.py"
#endif

enum { REQUEST_BYTES_MAX = 8 * 1024, HEADERS_MAX = 64, NAMES_MAX = 32, NAME_BYTES_MAX = 63, SALE_ID_MAX = 32, LENGTH_MAX = 1023 };

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
    uint32_t of_size[NAME_BYTES_MAX + 1];    /* by the size of a name: the places of those that have it, as bits */
} Reader;

static Py_ssize_t place_of(Reader *self, const char *name) {
    for (Py_ssize_t i = 0; i < self->unusual; i++)
        if (strcmp(PyBytes_AS_STRING(self->names[i]), name) == 0) return i;
    return -1;
}

static int reader_add(Reader *self, PyObject *names) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names); i++) {
        PyObject *name = PyTuple_GET_ITEM(names, i);
        if (!PyBytes_Check(name) || self->count >= NAMES_MAX || PyBytes_GET_SIZE(name) > NAME_BYTES_MAX) {
            PyErr_Format(PyExc_ValueError, "at most %d names, as bytes, of at most %d", NAMES_MAX, NAME_BYTES_MAX);
            return -1;
        }
        self->of_size[PyBytes_GET_SIZE(name)] |= (uint32_t)1 << self->count;
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

/* What follows a value: the first byte that is neither visible nor a space. Eight at a time are looked at together. */
static const unsigned char *skip_value(const unsigned char *at, const unsigned char *end) {
    const uint64_t ones = 0x0101010101010101u, high = 0x8080808080808080u;
    for (; end - at >= 8; at += 8) {
        uint64_t eight;
        memcpy(&eight, at, sizeof eight);
        /* is one of them above 127, above 126, or below 32? */
        if ((eight | (eight + ones) | ((eight - ones * ' ') & ~eight)) & high) break;
    }
    while (at < end && ((classes[*at] & VISIBLE) || *at == ' ')) at++;
    return at;
}

/* Reads one line of headers behind its "\r\n" and returns what follows it, or NULL if it is not plain. */
static const unsigned char *read_line(const unsigned char *at, const unsigned char *end, Span *name, Span *value) {
    name->at = at;
    while (at < end && (classes[*at] & NAME)) at++;
    name->size = at - name->at;
    if (name->size == 0 || end - at < 3 || at[0] != ':' || at[1] != ' ' || at[2] == ' ') return NULL;
    value->at = at += 2;
    at = skip_value(at, end);
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

typedef struct {
    Span sale_id, what, body;
    Span values[NAMES_MAX]; /* of the notable headers, by the places of their names */
} Request;

static int read_request(Reader *self, const unsigned char *at, const unsigned char *end, Request *request) {
    static const char BEGIN[] = "POST /v1/sales/", VERSION[] = " HTTP/1.1";
    if (end - at > REQUEST_BYTES_MAX || end - at < (Py_ssize_t)sizeof BEGIN || memcmp(at, BEGIN, sizeof BEGIN - 1) != 0)
        return 0;
    at += sizeof BEGIN - 1;
    Span *values = request->values;
    request->sale_id.at = at;
    while (at < end && (classes[*at] & ALNUM)) at++;
    request->sale_id.size = at - request->sale_id.at;
    if (request->sale_id.size < 1 || request->sale_id.size > SALE_ID_MAX || at >= end || *at++ != '/') return 0;
    request->what.at = at;
    if (end - at > 6 && memcmp(at, "orders", 6) == 0) request->what.size = 6;
    else if (end - at > 7 && memcmp(at, "entries", 7) == 0) request->what.size = 7;
    else return 0;
    at += request->what.size;
    if (end - at < (Py_ssize_t)sizeof VERSION || memcmp(at, VERSION, sizeof VERSION - 1) != 0) return 0;
    at += sizeof VERSION - 1;

    memset(values, 0, sizeof request->values);
    Py_ssize_t lines = 0;
    for (;;) {
        if (end - at < 2 || at[0] != '\r' || at[1] != '\n') return 0;
        at += 2;
        if (lines > 0 && end - at >= 2 && at[0] == '\r' && at[1] == '\n') break;
        Span name, value;
        at = read_line(at, end, &name, &value);
        if (at == NULL || ++lines > HEADERS_MAX) return 0;
        uint32_t places = name.size <= NAME_BYTES_MAX ? self->of_size[name.size] : 0;
        for (Py_ssize_t i = 0; i < self->count && places >> i; i++) {
            if (!(places >> i & 1)) continue;
            if (!same_name(name.at, PyBytes_AS_STRING(self->names[i]), name.size)) continue;
            if (i >= self->unusual || values[i].at != NULL) return 0; /* or it is there twice */
            values[i] = value;
            break;
        }
    }
    request->body = (Span){at + 2, end - at - 2};
    Py_ssize_t length = values[self->length].at == NULL ? 0 : length_in(values[self->length]);
    if (length != request->body.size || values[self->host].at == NULL) return 0;
    Span connection = values[self->connection];
    return connection.at == NULL || (connection.size == 10 && same_name(connection.at, "keep-alive", 10));
}

static PyObject *reader_read(Reader *self, PyObject *data) {
    if (!PyBytes_Check(data)) return PyErr_Format(PyExc_TypeError, "bytes are read");
    const unsigned char *at = (const unsigned char *)PyBytes_AS_STRING(data);
    Request request;
    if (!read_request(self, at, at + PyBytes_GET_SIZE(data), &request)) Py_RETURN_NONE;
    PyObject *headers = headers_of(self, request.values);
    if (headers == NULL) return NULL;
    return Py_BuildValue("(y#y#Ny#)", request.sale_id.at, request.sale_id.size, request.what.at, request.what.size,
                         headers, request.body.at, request.body.size);
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
    Py_ssize_t size = 0, rest = text.size % 4, i = 0;
    unsigned int bits = 0;
    if (rest == 1) return -1;
    for (; i < text.size - rest; i += 4, size += 3) {
        int a = base64url[text.at[i]], b = base64url[text.at[i + 1]], c = base64url[text.at[i + 2]],
            d = base64url[text.at[i + 3]];
        if ((a | b | c | d) < 0) return -1;
        out[size] = (unsigned char)(a << 2 | b >> 4);
        out[size + 1] = (unsigned char)(b << 4 | c >> 2);
        out[size + 2] = (unsigned char)(c << 6 | d);
    }
    for (; i < text.size; i++) {
        int value = base64url[text.at[i]];
        if (value < 0) return -1;
        bits = bits << 6 | (unsigned int)value;
        if (i % 4 != 0) out[size++] = (unsigned char)(bits >> (6 - 2 * (i % 4)));
    }
    if ((rest == 2 && (bits & 15)) || (rest == 3 && (bits & 3))) return -1;
    return size;
}

enum { TOKEN_BYTES_MAX = 4096, DIGEST_BYTES = 32, DIGEST_LETTERS = 43 };

typedef struct {
    Span header, signed_part;
    Py_ssize_t claims_size;
    unsigned char digest[DIGEST_BYTES + 1], claims[TOKEN_BYTES_MAX];
} Token;

static int read_token(Span text, Token *token) {
    if (text.size > TOKEN_BYTES_MAX || text.size <= DIGEST_LETTERS) return 0;
    token->signed_part = (Span){text.at, text.size - DIGEST_LETTERS - 1};
    Span signature = {text.at + token->signed_part.size + 1, DIGEST_LETTERS};
    if (signature.at[-1] != '.') return 0;
    const unsigned char *dot = memchr(text.at, '.', (size_t)token->signed_part.size);
    if (dot == NULL) return 0;
    token->header = (Span){text.at, dot - text.at};
    Span payload = {dot + 1, token->signed_part.size - token->header.size - 1};
    token->claims_size = decode_base64url(payload, token->claims);
    return token->claims_size >= 1 && decode_base64url(signature, token->digest) == DIGEST_BYTES;
}

static PyObject *open_token(PyObject *module, PyObject *text) {
    if (!PyBytes_Check(text)) return PyErr_Format(PyExc_TypeError, "bytes are read");
    Token token;
    if (!read_token((Span){(const unsigned char *)PyBytes_AS_STRING(text), PyBytes_GET_SIZE(text)}, &token))
        Py_RETURN_NONE;
    PyObject *decoded = PyUnicode_DecodeUTF8((const char *)token.claims, token.claims_size, NULL);
    if (decoded == NULL) {
        if (!PyErr_ExceptionMatches(PyExc_UnicodeDecodeError)) return NULL;
        PyErr_Clear();
        Py_RETURN_NONE;
    }
    return Py_BuildValue("(y#y#y#N)", token.header.at, token.header.size, token.signed_part.at, token.signed_part.size,
                         token.digest, (Py_ssize_t)DIGEST_BYTES, decoded);
}

/* ---- A plain claim: the request, its token, and what both say, in one go ---- */

enum { USER_BYTES_MAX = 128, DIGITS_MAX = 15 };

typedef struct {
    PyObject_HEAD
    Reader *reader;
    Py_ssize_t authorization, key, request_id, origin; /* places of these headers; the last may be -1 */
    PyObject *issuer, *audience;                       /* bytes, or NULL: none is set */
} ClaimReader;

typedef struct {
    Span name, value; /* without the quotation marks */
    char kind;        /* of the value: 's' string, 'n' number, '-' anything else */
    long long number;
} Member;

/* A string of visible ASCII and spaces, without escapes; what follows it, or NULL. */
static const unsigned char *read_string(const unsigned char *at, const unsigned char *end, Span *text) {
    if (at >= end || *at != '"') return NULL;
    text->at = ++at;
    while (at < end && *at != '"' && *at != '\\' && ((classes[*at] & VISIBLE) || *at == ' ')) at++;
    text->size = at - text->at;
    return at < end && *at == '"' ? at + 1 : NULL;
}

/* A whole number as it is spelled without sign or zeros before it. */
static const unsigned char *read_number(const unsigned char *at, const unsigned char *end, long long *number) {
    const unsigned char *begin = at;
    for (*number = 0; at < end && *at >= '0' && *at <= '9' && at - begin < DIGITS_MAX; at++)
        *number = *number * 10 + (*at - '0');
    return at == begin || (*begin == '0' && at - begin > 1) ? NULL : at;
}

static const unsigned char *read_word(const unsigned char *at, const unsigned char *end) {
    static const char *const WORDS[] = {"true", "false", "null"};
    for (size_t i = 0; i < sizeof WORDS / sizeof *WORDS; i++) {
        Py_ssize_t size = (Py_ssize_t)strlen(WORDS[i]);
        if (end - at >= size && memcmp(at, WORDS[i], (size_t)size) == 0) return at + size;
    }
    return NULL;
}

static const unsigned char *read_list(const unsigned char *at, const unsigned char *end) {
    Span text;
    long long number;
    if (at < end && *at == ']') return at + 1;
    while (at < end) {
        at = *at == '"' ? read_string(at, end, &text) : read_number(at, end, &number);
        if (at == NULL || at >= end) return NULL;
        if (*at == ']') return at + 1;
        if (*at++ != ',') return NULL;
    }
    return NULL;
}

static const unsigned char *read_member(const unsigned char *at, const unsigned char *end, Member *member) {
    at = read_string(at, end, &member->name);
    if (at == NULL || end - at < 2 || *at++ != ':') return NULL;
    member->kind = '-';
    if (*at == '"') {
        member->kind = 's';
        return read_string(at, end, &member->value);
    }
    if (*at >= '0' && *at <= '9') {
        member->kind = 'n';
        return read_number(at, end, &member->number);
    }
    return *at == '[' ? read_list(at + 1, end) : read_word(at, end);
}

/* What a token may say that is looked at, by its place. */
enum { SUB, EXP, IAT, NBF, JTI, AUD, ISS, CLAIMS };
static const char *const CLAIM_NAMES[CLAIMS] = {"sub", "exp", "iat", "nbf", "jti", "aud", "iss"};
static const char CLAIM_KINDS[CLAIMS] = {'s', 'n', 'n', 'n', 's', 's', 's'};

/* Reads an object whose members are strings, whole numbers, words and lists of the first two, with nothing between them. */
static int read_claims(const Token *token, Member *found) {
    const unsigned char *at = token->claims, *end = at + token->claims_size;
    memset(found, 0, CLAIMS * sizeof *found);
    if (*at++ != '{') return 0;
    for (;;) {
        Member member = {{NULL, 0}, {NULL, 0}, 0, 0};
        at = read_member(at, end, &member);
        if (at == NULL || at >= end) return 0;
        for (int i = 0; i < CLAIMS; i++) {
            if (member.name.size != 3 || memcmp(member.name.at, CLAIM_NAMES[i], 3) != 0) continue;
            if (member.kind != CLAIM_KINDS[i] || found[i].kind) return 0; /* or it is there twice */
            found[i] = member;
            break;
        }
        if (*at == '}') return at + 1 == end;
        if (*at++ != ',') return 0;
    }
}

static int says(const Member *member, PyObject *text) {
    return member->kind && member->value.size == PyBytes_GET_SIZE(text) &&
           memcmp(member->value.at, PyBytes_AS_STRING(text), (size_t)member->value.size) == 0;
}

/* As most are spelled: see domain/buyer_id.py. */
static int is_plain_user(const Member *sub) {
    static const char MORE[] = "._@|:+~=/-";
    if (!sub->kind || sub->value.size < 1 || sub->value.size > USER_BYTES_MAX) return 0;
    for (Py_ssize_t i = 0; i < sub->value.size; i++)
        if (!(classes[sub->value.at[i]] & ALNUM) && strchr(MORE, sub->value.at[i]) == NULL) return 0;
    return 1;
}

/* What nearly everybody sends, as they send it; 0: something else. */
static int quantity_in(Span body) {
    static const char QUANTITY[] = "{\"quantity\":";
    if (body.size == 0 || (body.size == 2 && memcmp(body.at, "{}", 2) == 0)) return 1;
    Py_ssize_t begin = sizeof QUANTITY - 1;
    if (body.size < begin + 2 || memcmp(body.at, QUANTITY, (size_t)begin) != 0) return 0;
    if (body.at[begin] == ' ') begin++;
    Span digits = {body.at + begin, body.size - begin - 1};
    Py_ssize_t quantity = body.at[body.size - 1] == '}' ? length_in(digits) : 0;
    return quantity >= 1 && quantity <= 10 ? (int)quantity : 0;
}

static PyObject *bytes_or_none(Span span) {
    return span.at == NULL ? Py_NewRef(Py_None) : bytes_of(span);
}

static PyObject *claim_reader_read(ClaimReader *self, PyObject *data) {
    static const char BEARER[] = "Bearer ";
    if (!PyBytes_Check(data)) return PyErr_Format(PyExc_TypeError, "bytes are read");
    const unsigned char *at = (const unsigned char *)PyBytes_AS_STRING(data);
    Request request;
    if (!read_request(self->reader, at, at + PyBytes_GET_SIZE(data), &request) || request.what.size != 6)
        Py_RETURN_NONE;
    for (Py_ssize_t i = 0; i < self->reader->unusual; i++) /* a pass, for example */
        if (request.values[i].at != NULL && i != self->authorization && i != self->key && i != self->request_id &&
            i != self->origin && i != self->reader->host && i != self->reader->length && i != self->reader->connection)
            Py_RETURN_NONE;
    int quantity = quantity_in(request.body);
    Span authorization = request.values[self->authorization];
    Py_ssize_t scheme = sizeof BEARER - 1;
    if (!quantity || authorization.at == NULL || authorization.size <= scheme ||
        memcmp(authorization.at, BEARER, (size_t)scheme) != 0)
        Py_RETURN_NONE;
    Token token;
    Member said[CLAIMS];
    if (!read_token((Span){authorization.at + scheme, authorization.size - scheme}, &token)) Py_RETURN_NONE;
    if (!read_claims(&token, said) || !is_plain_user(&said[SUB]) || !said[EXP].kind) Py_RETURN_NONE;
    if (self->audience == NULL ? said[AUD].kind : !says(&said[AUD], self->audience)) Py_RETURN_NONE;
    if (self->issuer != NULL && !says(&said[ISS], self->issuer)) Py_RETURN_NONE;
    Span origin = self->origin < 0 ? (Span){NULL, 0} : request.values[self->origin];
    return Py_BuildValue("(s#iy#y#y#s#LLLs#NNN)", request.sale_id.at, request.sale_id.size, quantity, token.header.at,
                         token.header.size, token.signed_part.at, token.signed_part.size, token.digest,
                         (Py_ssize_t)DIGEST_BYTES, said[SUB].value.at, said[SUB].value.size, said[EXP].number,
                         said[IAT].number, said[NBF].number, token.claims, token.claims_size,
                         bytes_or_none(request.values[self->key]), bytes_or_none(request.values[self->request_id]),
                         bytes_or_none(origin));
}

static int text_or_none(PyObject *given, PyObject **kept) {
    *kept = NULL;
    if (given == Py_None) return 1;
    *kept = PyUnicode_AsUTF8String(given);
    return *kept != NULL;
}

static void claim_reader_dealloc(ClaimReader *self) {
    Py_XDECREF(self->reader);
    Py_XDECREF(self->issuer);
    Py_XDECREF(self->audience);
    Py_TYPE(self)->tp_free((PyObject *)self);
}

static PyObject *claim_reader_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    PyObject *reader, *issuer, *audience;
    if (!PyArg_ParseTuple(args, "O!OO", &ReaderType, &reader, &issuer, &audience)) return NULL;
    ClaimReader *self = (ClaimReader *)type->tp_alloc(type, 0);
    if (self == NULL) return NULL;
    self->reader = (Reader *)Py_NewRef(reader);
    self->authorization = place_of(self->reader, "authorization");
    self->key = place_of(self->reader, "idempotency-key");
    self->request_id = place_of(self->reader, "x-request-id");
    self->origin = place_of(self->reader, "origin");
    if (self->authorization < 0 || self->key < 0 || self->request_id < 0)
        PyErr_SetString(PyExc_ValueError, "authorization, idempotency-key and x-request-id must be among the notable names");
    else if (text_or_none(issuer, &self->issuer) && text_or_none(audience, &self->audience))
        return (PyObject *)self;
    Py_DECREF(self);
    return NULL;
}

static PyMethodDef claim_reader_methods[] = {
    {"read", (PyCFunction)claim_reader_read, METH_O, "What a plain claim says, or None."},
    {NULL, NULL, 0, NULL},
};

static PyTypeObject ClaimReaderType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "seckill.native.kernel.PlainClaimReader",
    .tp_basicsize = sizeof(ClaimReader),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = claim_reader_new,
    .tp_dealloc = (destructor)claim_reader_dealloc,
    .tp_methods = claim_reader_methods,
};

/* ---- Public ids ---- */

enum { BLOCK_BYTES = 16, ID_LENGTH = 13 };

static PyObject *spell_id(uint32_t left, uint32_t right) {
    uint64_t number = (uint64_t)left << 32 | right;
    PyObject *id = PyUnicode_New(ID_LENGTH, 127);
    for (int place = ID_LENGTH - 1; id != NULL && place >= 0; place--, number >>= 5)
        PyUnicode_1BYTE_DATA(id)[place] = (Py_UCS1)ALPHABET[number & 31];
    return id;
}

/* One round: the right halves are encrypted, each in a block of its own, and change places with the left ones. */
static int feistel(PyObject *cipher, uint32_t *left, uint32_t *right, Py_ssize_t count) {
    PyObject *blocks = PyBytes_FromStringAndSize(NULL, count * BLOCK_BYTES);
    if (blocks == NULL) return -1;
    unsigned char *at = (unsigned char *)PyBytes_AS_STRING(blocks);
    memset(at, 0, (size_t)(count * BLOCK_BYTES));
    for (Py_ssize_t i = 0; i < count; i++, at += BLOCK_BYTES)
        for (int byte = 0; byte < 4; byte++) at[byte] = (unsigned char)(right[i] >> 8 * byte);
    PyObject *scrambled = PyObject_CallOneArg(cipher, blocks);
    Py_DECREF(blocks);
    if (scrambled == NULL) return -1;
    int whole = PyBytes_Check(scrambled) && PyBytes_GET_SIZE(scrambled) == count * BLOCK_BYTES;
    if (whole) {
        at = (unsigned char *)PyBytes_AS_STRING(scrambled);
        for (Py_ssize_t i = 0; i < count; i++, at += BLOCK_BYTES) {
            uint32_t half = at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
            uint32_t mixed = left[i] ^ half;
            left[i] = right[i];
            right[i] = mixed;
        }
    } else
        PyErr_SetString(PyExc_ValueError, "a cipher gives as many blocks as it takes");
    Py_DECREF(scrambled);
    return whole ? 0 : -1;
}

/* Of numbers below 2^64; each of `ciphers` encrypts blocks. */
static PyObject *encode_ids(PyObject *module, PyObject *args) {
    PyObject *numbers, *ciphers, *ids = NULL;
    if (!PyArg_ParseTuple(args, "O!O!", &PyTuple_Type, &numbers, &PyTuple_Type, &ciphers)) return NULL;
    Py_ssize_t count = PyTuple_GET_SIZE(numbers);
    uint32_t *left = PyMem_New(uint32_t, 2 * (size_t)count + 1);
    if (left == NULL) return PyErr_NoMemory();
    uint32_t *right = left + count;
    for (Py_ssize_t i = 0; i < count; i++) {
        unsigned long long number = PyLong_AsUnsignedLongLong(PyTuple_GET_ITEM(numbers, i));
        if (number == (unsigned long long)-1 && PyErr_Occurred()) goto over;
        left[i] = (uint32_t)(number >> 32);
        right[i] = (uint32_t)number;
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(ciphers); i++)
        if (feistel(PyTuple_GET_ITEM(ciphers, i), left, right, count) < 0) goto over;
    ids = PyList_New(count);
    for (Py_ssize_t i = 0; ids != NULL && i < count; i++) {
        PyObject *id = spell_id(left[i], right[i]);
        if (id == NULL) Py_CLEAR(ids);
        else PyList_SET_ITEM(ids, i, id);
    }
over:
    PyMem_Free(left);
    return ids;
}

static PyMethodDef methods[] = {
    {"open_token", open_token, METH_O, "Header, what is signed, signature and claims of a token, or None."},
    {"encode_ids", encode_ids, METH_VARARGS, "The public ids of numbers."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, .m_name = "seckill.native.kernel", .m_size = -1, .m_methods = methods,
};

int add_ring(PyObject *module); /* ring.c */

PyMODINIT_FUNC PyInit_kernel(void) {
    prepare_tables();
    PyObject *module = PyModule_Create(&definition);
    if (module == NULL || PyModule_AddType(module, &ReaderType) < 0 || PyModule_AddType(module, &ClaimReaderType) < 0 ||
        add_ring(module) < 0 || PyModule_AddStringConstant(module, "SOURCE", SOURCE) < 0)
        Py_CLEAR(module);
    return module;
}
