import { ERRORS, type ErrorCode } from './catalogue.ts';
import { type ErrorDetails, PublicError } from './public-error.ts';

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
