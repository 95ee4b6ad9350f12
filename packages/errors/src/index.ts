/** An entry in the catalogue of public errors, from which error envelopes and error pages are generated. */
export interface ErrorEntry {
  readonly status: number;
  readonly message: string;
  readonly cause: string;
  readonly fix: string;
  /** True if the same request may succeed later. Clients retry only these errors. */
  readonly retry: boolean;
}

/** Error codes and HTTP statuses, as specified in the contract under "Error envelope". */
export const ERRORS = {
  VALIDATION_ERROR: {
    status: 400,
    message: 'The request is not valid.',
    cause:
      'A required header, parameter or member is missing, the body cannot be read, or a value is outside its limits. Requests with oversized headers get this code with status 431.',
    fix: 'Read `details`, correct the request and send it again. An unchanged request will fail again. If the body is not JSON in UTF-8, `details` contains the position of the error: `offset` in bytes, `line`, `column`, the unexpected input in `found`, and for a batch `messageIndex`, counted from 0.',
    retry: false,
  },
  UNAUTHORISED_REQUEST: {
    status: 401,
    message: 'The key is not valid for this operation.',
    cause: 'The key is malformed, unknown, replaced by a newer key, or of the wrong kind (publishable or secret).',
    fix: "Use the environment's current key. Publishable keys can send messages. Secret keys can erase data.",
    retry: false,
  },
  AUTHENTICATION_ERROR: {
    status: 403,
    message: 'The key does not allow this operation.',
    cause: 'The key is not valid, or the resource belongs to another project.',
    fix: 'Use a key from the project that owns the resource.',
    retry: false,
  },
  RESOURCE_NOT_FOUND: {
    status: 404,
    message: 'The resource does not exist.',
    cause: 'The path or the method is not part of the API, or the resource does not exist.',
    fix: 'Check the method and path against the interface definition. All paths start with `/v1`.',
    retry: false,
  },
  CONFLICT_ERROR: {
    status: 409,
    message: 'The request conflicts with existing data.',
    cause: 'A resource with the same identifier already exists.',
    fix: 'Read `details` for the conflicting values, then change or remove them.',
    retry: false,
  },
  TOO_MANY_REQUESTS_ERROR: {
    status: 429,
    message: 'Too many requests at the moment.',
    cause: "The key's rate limit is exhausted, or the service has reached its limit of unacknowledged data.",
    fix: 'Send the same request again after the number of seconds in the `Retry-After` header.',
    retry: true,
  },
  INTERNAL_SERVER_ERROR: {
    status: 500,
    message: 'The service could not complete the request.',
    cause: 'A component of the service failed or did not respond in time. The request itself was not rejected.',
    fix: 'Send the same request again, with the same message ids. Nothing is stored twice. If the error persists, send the `trace_id` to the operator.',
    retry: true,
  },
} as const satisfies Record<string, ErrorEntry>;

export type ErrorCode = keyof typeof ERRORS;

export const ERROR_CODES = Object.keys(ERRORS) as ErrorCode[];

/** Explains why a message was rejected. Shown on the error page for the rejection code. */
export interface RejectionEntry {
  readonly cause: string;
  readonly fix: string;
}

/** Rejection codes, as listed in the contract under "Enumerations". New codes may be added. */
export const REJECTIONS = {
  MISSING_REQUIRED_FIELD: {
    cause:
      'The field is absent, null or blank. Every message requires type, messageId and eventTimestamp; track requires eventName, identify requires userId, alias requires fromId and toId. A context requires library and libraryVersion.',
    fix: 'Set the field that `field` names to a non-blank value.',
  },
  INVALID_ENUM: {
    cause: "The value is not one of the field's allowed values.",
    fix: 'Use one of the values that the documentation lists for the field, in lower case, or omit the field.',
  },
  INVALID_FORMAT: {
    cause:
      'The value has the wrong JSON type or format, such as a messageId that is not a UUID, an eventTimestamp that is not an RFC 3339 timestamp, or a number instead of a string.',
    fix: 'Send the JSON type and format that the documentation lists for the field.',
  },
  INVALID_VALUE: {
    cause:
      'The format is valid but the value is not: the string is too long, the event is too far in the past or the future, the alias links an id to itself, or the message is too large.',
    fix: '`message` names the bound that the value breaks, such as `userId is longer than 256 characters`. Send a value within it. The documentation of the code lists all bounds.',
  },
  UNSUPPORTED_TYPE: { cause: 'The message type is unknown.', fix: 'Use track, page, screen, identify or alias.' },
  DUPLICATE_MESSAGE_ID: {
    cause:
      'Several messages in this batch have the same messageId, ignoring case. All of these messages are rejected, because they may differ.',
    fix: 'Use a unique id for every message. Resending a whole batch with the same ids is safe and stores nothing twice.',
  },
} as const satisfies Record<string, RejectionEntry>;

export type ErrorDetails = Readonly<Record<string, unknown>>;

export interface PublicErrorOptions {
  /** Public message. Default: the message in the catalogue. */
  message?: string;
  details?: ErrorDetails | null;
  /** `Retry-After` for a 429, in whole seconds. Default: 1, because capacity is usually available by then. */
  retryAfterS?: number;
  /** Internal cause, which is logged but never sent to the caller. */
  cause?: unknown;
}

/** An error with a public part (code, message, details) and an internal cause that is never sent to callers. */
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

/** Body of every error response except responses that list rejected messages. */
export interface ErrorEnvelope {
  readonly message: string;
  readonly link: string;
  readonly trace_id: string;
  readonly code: ErrorCode;
  readonly details: ErrorDetails | null;
}

/**
 * Converts an error to a response. An error that is not a PublicError becomes an INTERNAL_SERVER_ERROR with the message
 * from the catalogue.
 */
export function toEnvelope(
  error: unknown,
  context: { traceId: string; link: (code: ErrorCode) => string },
): { readonly status: number; readonly body: ErrorEnvelope } {
  const publicError = error instanceof PublicError ? error : new PublicError('INTERNAL_SERVER_ERROR');
  // Only the operator may see the message and details of a 500.
  const isInternal = publicError.code === 'INTERNAL_SERVER_ERROR';
  return {
    status: publicError.status,
    body: {
      message: isInternal ? ERRORS.INTERNAL_SERVER_ERROR.message : publicError.message,
      link: context.link(publicError.code),
      trace_id: context.traceId,
      code: publicError.code,
      details: isInternal ? null : publicError.details,
    },
  };
}
