import { parseContract } from '@playline/access-keys';
import { PublicError } from '@playline/errors';
import { UsageError } from './command.ts';

export interface ContractOptions {
  readonly chain?: string | undefined;
  readonly contract?: string | undefined;
}

/** Parses `--chain` and `--contract`. @throws UsageError */
export function contractOf({ chain = '', contract = '' }: ContractOptions): ReturnType<typeof parseContract> {
  try {
    return parseContract({ chain, contractAddress: contract });
  } catch (fault) {
    if (fault instanceof PublicError) throw new UsageError(`--chain and --contract: ${fault.message}`);
    throw fault;
  }
}
