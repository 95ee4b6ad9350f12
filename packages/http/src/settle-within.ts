import { PublicError } from '@playline/errors';
import { waitAtMost } from '@playline/stores';

/**
 * Waits for work until a deadline. The work goes on after it; a caller that needs its end must listen to it.
 * @throws PublicError as the work throws it; INTERNAL_SERVER_ERROR for any other fault and for the deadline
 */
export async function settleWithin<T>(deadlineMs: number, work: Promise<T>): Promise<T> {
  try {
    return await waitAtMost(deadlineMs, work, () => {
      throw new Error(`not done within ${deadlineMs} ms`);
    });
  } catch (error) {
    throw error instanceof PublicError ? error : new PublicError('INTERNAL_SERVER_ERROR', { cause: error });
  }
}
