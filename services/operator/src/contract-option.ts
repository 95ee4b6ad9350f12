import { parseContract } from '@playline/access-keys';
import { PublicError } from '@playline/errors';
import { textOf, UsageError } from './command.ts';

/** The contract of `--chain` and `--contract`. @throws UsageError */
export function contractOf(values: Parameters<typeof textOf>[0]): ReturnType<typeof parseContract> {
  try {
    return parseContract({ chain: textOf(values, 'chain') ?? '', contractAddress: textOf(values, 'contract') ?? '' });
  } catch (fault) {
    if (fault instanceof PublicError) throw new UsageError(`--chain and --contract: ${fault.message}`);
    throw fault;
  }
}
