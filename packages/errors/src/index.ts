/** The catalogue of public errors, from which envelopes and the pages of codes are made. */
export interface ErrorEntry {
  readonly status: number;
  readonly message: string;
  readonly cause: string;
  readonly fix: string;
  /** True when the same request may succeed later. Clients repeat a request only for these codes. */
  readonly retry: boolean;
}

/** The codes of the error envelope and their statuses: contract, "Error envelope". */
export const ERRORS = {
  VALIDATION_ERROR: {
    status: 400,
    message: 'The request is not valid.',
    cause:
      'A required header, parameter or member is missing, the body cannot be read, or a value lies outside its limits. Headers that are too long have this code and status 431.',
    fix: 'Read `details`, correct the request and send it again. Sending the same request again fails again. If the body is not JSON in UTF-8, `details` has the position: `offset` in bytes, `line`, `column`, what was `found`, and in a batch `messageIndex`, counted from 0.',
    retry: false,
  },
  UNAUTHORISED_REQUEST: {
    status: 401,
    message: 'The key is not valid for this operation.',
    cause: 'The key is malformed, unknown, replaced by a newer one, or of the other kind (publishable or secret).',
    fix: 'Use the current key of the environment. Publishable keys send messages, secret keys erase data.',
    retry: false,
  },
  AUTHENTICATION_ERROR: {
    status: 403,
    message: 'The key does not allow this.',
    cause: 'The key is not valid, or it belongs to another project than the resource.',
    fix: 'Use a key of the project that owns the resource.',
    retry: false,
  },
  RESOURCE_NOT_FOUND: {
    status: 404,
    message: 'The resource does not exist.',
    cause: 'The path or the method is not part of the interface, or the resource does not exist.',
    fix: 'Compare method and path with the interface definition; all paths start with `/v1`.',
    retry: false,
  },
  CONFLICT_ERROR: {
    status: 409,
    message: 'The request conflicts with existing data.',
    cause: 'Something with the same identifier already exists.',
    fix: 'Read `details` for the conflicting values, and leave them out or choose others.',
    retry: false,
  },
  TOO_MANY_REQUESTS_ERROR: {
    status: 429,
    message: 'Too many requests at the moment.',
    cause: 'The rate limit of the key is used up, or the service holds as much unacknowledged data as it may.',
    fix: 'Send the same request again after the number of seconds in the `Retry-After` header.',
    retry: true,
  },
  INTERNAL_SERVER_ERROR: {
    status: 500,
    message: 'The service could not complete the request.',
    cause: 'Something inside the service failed or did not answer in time. The request itself was not refused.',
    fix: 'Send the same request again, with the same message ids; nothing is stored twice. If the error persists, give the operator the `trace_id`.',
    retry: true,
  },
} as const satisfies Record<string, ErrorEntry>;

export type ErrorCode = keyof typeof ERRORS;

export const ERROR_CODES = Object.keys(ERRORS) as ErrorCode[];

/** Why one message of a batch was refused; the page of a rejection code is made of these texts. */
export interface RejectionEntry {
  readonly cause: string;
  readonly fix: string;
}

/** The codes of a RejectionError: contract, "Enumerations". An open set: new codes may be added. */
export const REJECTIONS = {
  MISSING_REQUIRED_FIELD: {
    cause:
      'The field is absent, null or blank. Every message needs type, messageId and eventTimestamp; track needs eventName, identify needs userId, alias needs fromId and toId. A context needs library and libraryVersion.',
    fix: 'Give the field that `field` names a value that is not blank.',
  },
  INVALID_ENUM: {
    cause: 'The value is none of those that the field may have.',
    fix: 'Use one of the values that the interface definition lists for the field, in lower case, or leave the field out.',
  },
  INVALID_FORMAT: {
    cause:
      'The value has the wrong JSON type or the wrong form: a messageId that is no UUID, an eventTimestamp that is no RFC 3339 timestamp, a number where text belongs.',
    fix: 'Send the JSON type and the form that the interface definition gives for the field.',
  },
  INVALID_VALUE: {
    cause:
      'The form is right and the value is not: text that is too long, an event too far in the past or the future, an alias of an id to itself, a message that is too large.',
    fix: 'Read `message`, which names the bound, and bring the value within it.',
  },
  UNSUPPORTED_TYPE: {
    cause: 'The type of the message is unknown.',
    fix: 'Use track, page, screen, identify or alias.',
  },
  DUPLICATE_MESSAGE_ID: {
    cause:
      'Several messages of this batch have the same messageId in upper or lower case. None of them is accepted, since they may differ.',
    fix: 'Give every message its own id. Sending a whole batch again with the same ids is correct and stores nothing twice.',
  },
} as const satisfies Record<string, RejectionEntry>;

export type ErrorDetails = Readonly<Record<string, unknown>>;

export interface PublicErrorOptions {
  /** Public text; default: the catalogue's. */
  message?: string;
  details?: ErrorDetails | null;
  /** Whole seconds for the `Retry-After` of a 429; default 1, because capacity is usually free again then. */
  retryAfterS?: number;
  /** For the log, never for the caller. */
  cause?: unknown;
}

/** A failure with a public part (code, message, details) and an internal cause that never leaves the process. */
export class PublicError extends Error {
  override readonly name = 'PublicError';
  readonly code: ErrorCode;
  readonly details: ErrorDetails | null;
  /** Whole seconds to wait before a retry; null for every code but TOO_MANY_REQUESTS_ERROR. */
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

/** Body of every error response but a rejection: contract, "Error envelope". */
export interface ErrorEnvelope {
  readonly message: string;
  readonly link: string;
  readonly trace_id: string;
  readonly code: ErrorCode;
  readonly details: ErrorDetails | null;
}

/** The response of any fault. Faults that are not a PublicError become INTERNAL_SERVER_ERROR, without their message. */
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
