/** The catalogue of public errors, from which envelopes and error pages are generated. */
export interface ErrorEntry {
  readonly status: number;
  readonly message: string;
  readonly cause: string;
  readonly fix: string;
  /** True when the same request may succeed later. Clients retry only these codes. */
  readonly retry: boolean;
}

/** The codes of the error envelope and their statuses: contract, "Error envelope". */
export const ERRORS = {
  VALIDATION_ERROR: {
    status: 400,
    message: 'The request is not valid.',
    cause:
      'A required header, parameter or member is missing, the body cannot be read, or a value is outside its limits. Headers that are too long get this code with status 431.',
    fix: 'Read `details`, correct the request and send it again. An unchanged request will fail again. If the body is not JSON in UTF-8, `details` contains the position: `offset` in bytes, `line`, `column`, what was `found`, and in a batch `messageIndex`, counted from 0.',
    retry: false,
  },
  UNAUTHORISED_REQUEST: {
    status: 401,
    message: 'The key is not valid for this operation.',
    cause: 'The key is malformed, unknown, replaced by a newer key, or of the wrong kind (publishable or secret).',
    fix: 'Use the current key of the environment. Publishable keys send messages, secret keys erase data.',
    retry: false,
  },
  AUTHENTICATION_ERROR: {
    status: 403,
    message: 'The key does not allow this.',
    cause: 'The key is not valid, or the resource belongs to another project.',
    fix: 'Use a key of the project that owns the resource.',
    retry: false,
  },
  RESOURCE_NOT_FOUND: {
    status: 404,
    message: 'The resource does not exist.',
    cause: 'The path or the method is not part of the API, or the resource does not exist.',
    fix: 'Compare method and path with the interface definition; all paths start with `/v1`.',
    retry: false,
  },
  CONFLICT_ERROR: {
    status: 409,
    message: 'The request conflicts with existing data.',
    cause: 'Something with the same identifier already exists.',
    fix: 'Read `details` for the conflicting values, and remove or change them.',
    retry: false,
  },
  TOO_MANY_REQUESTS_ERROR: {
    status: 429,
    message: 'Too many requests at the moment.',
    cause: 'The rate limit of the key is exhausted, or the service has reached its limit of unacknowledged data.',
    fix: 'Send the same request again after the number of seconds in the `Retry-After` header.',
    retry: true,
  },
  INTERNAL_SERVER_ERROR: {
    status: 500,
    message: 'The service could not complete the request.',
    cause: 'Something inside the service failed or did not respond in time. The request itself was not rejected.',
    fix: 'Send the same request again, with the same message ids; nothing is stored twice. If the error persists, give the operator the `trace_id`.',
    retry: true,
  },
} as const satisfies Record<string, ErrorEntry>;

export type ErrorCode = keyof typeof ERRORS;

export const ERROR_CODES = Object.keys(ERRORS) as ErrorCode[];

/** Why a message in a batch was rejected; shown on the page for the rejection code. */
export interface RejectionEntry {
  readonly cause: string;
  readonly fix: string;
}

/** The codes of a RejectionError: contract, "Enumerations". An open set: new codes may be added. */
export const REJECTIONS = {
  MISSING_REQUIRED_FIELD: {
    cause:
      'The field is absent, null or blank. Every message needs type, messageId and eventTimestamp; track needs eventName, identify needs userId, alias needs fromId and toId. A context needs library and libraryVersion.',
    fix: 'Set the field named in `field` to a value that is not blank.',
  },
  INVALID_ENUM: {
    cause: "The value is not one of the field's allowed values.",
    fix: 'Use one of the values that the interface definition lists for the field, in lower case, or omit the field.',
  },
  INVALID_FORMAT: {
    cause:
      'The value has the wrong JSON type or format: a messageId that is not a UUID, an eventTimestamp that is not an RFC 3339 timestamp, a number instead of a string.',
    fix: 'Send the JSON type and format that the interface definition specifies for the field.',
  },
  INVALID_VALUE: {
    cause:
      'The format is valid but the value is not: a string that is too long, an event too far in the past or the future, an alias of an id to itself, a message that is too large.',
    fix: 'Read `message`, which states the limit, and send a value within it.',
  },
  UNSUPPORTED_TYPE: {
    cause: 'The type of the message is unknown.',
    fix: 'Use track, page, screen, identify or alias.',
  },
  DUPLICATE_MESSAGE_ID: {
    cause:
      'Several messages in this batch have the same messageId, ignoring case. All of them are rejected, since they may differ.',
    fix: 'Give every message its own id. Resending a whole batch with the same ids is safe and stores nothing twice.',
  },
} as const satisfies Record<string, RejectionEntry>;

export type ErrorDetails = Readonly<Record<string, unknown>>;

export interface PublicErrorOptions {
  /** Public message; default: the catalogue's. */
  message?: string;
  details?: ErrorDetails | null;
  /** Whole seconds for the `Retry-After` of a 429; default 1, because capacity is usually free again then. */
  retryAfterS?: number;
  /** Logged, never sent to the caller. */
  cause?: unknown;
}

/** A failure with a public part (code, message, details) and an internal cause that never leaves the process. */
export class PublicError extends Error {
  override readonly name = 'PublicError';
  readonly code: ErrorCode;
  readonly details: ErrorDetails | null;
  /** Whole seconds to wait before a retry; null for every code except TOO_MANY_REQUESTS_ERROR. */
  readonly retryAfterS: number | null;

  constructor(code: ErrorCode, options: PublicErrorOptions = {}) {
    super(options.message ?? ERRORS[code].message, { cause: options.cause });
    this.code = code;
    this.details = options.details ?? null;
    this.retryAfterS = code === 'TOO_MANY_REQUESTS_ERROR' ? Math.ceil(options.retryAfterS ?? 1) : null;
  }

  get status(): number {
    return ERRORS[this.code].status;
  }

  get retry(): boolean {
    return ERRORS[this.code].retry;
  }
}

export function invalidField(field: string, message: string): PublicError {
  return new PublicError('VALIDATION_ERROR', { message, details: { field } });
}

/** Body of every error response except rejections: contract, "Error envelope". */
export interface ErrorEnvelope {
  readonly message: string;
  readonly link: string;
  readonly trace_id: string;
  readonly code: ErrorCode;
  readonly details: ErrorDetails | null;
}

/**
 * The response for any fault. Faults that are not a PublicError become INTERNAL_SERVER_ERROR, without their message.
 */
export function toEnvelope(
  error: unknown,
  context: { traceId: string; link: (code: ErrorCode) => string },
): { readonly status: number; readonly body: ErrorEnvelope } {
  const known = error instanceof PublicError ? error : new PublicError('INTERNAL_SERVER_ERROR');
  // The message of a 500 is for the operator.
  const internal = known.code === 'INTERNAL_SERVER_ERROR';
  return {
    status: known.status,
    body: {
      message: internal ? ERRORS.INTERNAL_SERVER_ERROR.message : known.message,
      link: context.link(known.code),
      trace_id: context.traceId,
      code: known.code,
      details: internal ? null : known.details,
    },
  };
}
