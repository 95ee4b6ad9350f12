import { ERRORS, type ErrorCode } from './catalogue.ts';

export type ErrorDetails = Readonly<Record<string, unknown>>;

export interface PublicErrorOptions {
  /** Public words for this case; without them the catalogue's. */
  message?: string;
  details?: ErrorDetails | null;
  /** Whole seconds for the `Retry-After` of a 429; 1 without it. */
  retryAfterS?: number;
  /** For the log, never for the caller. */
  cause?: unknown;
}

/** The smallest whole number: what is full now is usually free again within a second. */
const RETRY_AFTER_S = 1;

/** A failure with a public half (code, words, details) and an internal half (cause) that never leaves the process. */
export class PublicError extends Error {
  override readonly name = 'PublicError';
  readonly code: ErrorCode;
  readonly details: ErrorDetails | null;
  /** Whole seconds to wait before sending again; null for every code but TOO_MANY_REQUESTS_ERROR, which always has it. */
  readonly retryAfterS: number | null;

  constructor(code: ErrorCode, options: PublicErrorOptions = {}) {
    super(options.message ?? ERRORS[code].message, { cause: options.cause });
    this.code = code;
    this.details = options.details ?? null;
    this.retryAfterS = code === 'TOO_MANY_REQUESTS_ERROR' ? Math.ceil(options.retryAfterS ?? RETRY_AFTER_S) : null;
  }

  get status(): number {
    return ERRORS[this.code].status;
  }

  /** Whether the same request may succeed later: a property of the code. */
  get retry(): boolean {
    return ERRORS[this.code].retry;
  }
}

/** One field of a request that is refused: 400 with the field's name. */
export function invalidField(field: string, message: string): PublicError {
  return new PublicError('VALIDATION_ERROR', { message, details: { field } });
}

/** Body of every error answer but a rejection: contract, "Error envelope". */
export interface ErrorEnvelope {
  readonly message: string;
  readonly link: string;
  readonly trace_id: string;
  readonly code: ErrorCode;
  readonly details: ErrorDetails | null;
}

export interface EnvelopeContext {
  /** 32 lower-case hex characters. */
  traceId: string;
  /** Address of the page that explains a code. */
  link: (code: ErrorCode) => string;
}

/**
 * Turns any fault into what a caller may see. Everything that is not a PublicError is INTERNAL_SERVER_ERROR with the
 * catalogue's words: neither message nor cause of such a fault leaves the process.
 */
export function toEnvelope(
  error: unknown,
  context: EnvelopeContext,
): { readonly status: number; readonly body: ErrorEnvelope } {
  const known = error instanceof PublicError ? error : new PublicError('INTERNAL_SERVER_ERROR');
  // What a 500 is about is for the operator: its own words would leak how the service is built.
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
