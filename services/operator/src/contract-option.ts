import { parseContract } from '@playline/access-keys';
import { PublicError } from '@playline/errors';
import { textOf, UsageError, type Values } from './command.ts';

/** The contract of `--chain` and `--contract`. @throws UsageError */
export function contractOf(values: Values): ReturnType<typeof parseContract> {
  try {
    return parseContract({ chain: textOf(values, 'chain') ?? '', contractAddress: textOf(values, 'contract') ?? '' });
  } catch (fault) {
    if (fault instanceof PublicError) throw new UsageError(`--chain and --contract: ${fault.message}`);
    throw fault;
  }
}
