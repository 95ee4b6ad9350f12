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
