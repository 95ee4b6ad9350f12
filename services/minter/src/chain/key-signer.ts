import type { RecordCopy, SignableKeyRecord } from '@playline/access-keys';
import { toHexText } from '@playline/contracts';
import { parseTransaction } from 'viem/utils';
import type { LaneSigner, SignedTransaction, SignerLane, UnsignedTransaction } from '../ports.ts';

export interface KeySignerParts {
  readonly keys: Pick<RecordCopy<SignableKeyRecord>, 'records' | 'ageMs'>;
  /** The private key never leaves it. */
  readonly signTransaction: (
    record: SignableKeyRecord,
    transaction: UnsignedTransaction,
    options: { readonly isOpen: boolean },
  ) => Promise<SignedTransaction>;
}

/** Signs with the sealed key of one address. */
export function createKeySigner({ keys, signTransaction }: KeySignerParts, { signer }: SignerLane): LaneSigner {
  const address = toHexText(signer);
  const find = () => keys.records.find((record) => record.address === address);
  const waits = (reason: string) => ({ kind: 'waits', reason }) as const;
  return {
    status: (environmentId) => {
      const record = find();
      if (record === undefined && keys.ageMs === Number.POSITIVE_INFINITY)
        return waits('Signable keys are not known yet: Redis does not answer, or lacks them.');
      if (record === undefined) return waits(`There is no signable key ${address}.`);
      if (record.environmentId !== environmentId)
        return waits(`The signable key ${address} is of another environment.`);
      return record.state === 'live' ? { kind: 'live' } : waits(`The signable key ${address} is disabled.`);
    },
    sign: async (transaction, options) => {
      const record = find();
      if (record === undefined) throw new Error(`there is no signable key ${address}`);
      return signTransaction(record, transaction, options);
    },
    read: readSigned,
  };
}

/** @throws Error unless it is a transaction of type 2 with calldata */
function readSigned(bytes: Buffer): UnsignedTransaction {
  const given = parseTransaction(toHexText(bytes));
  const { chainId, nonce = 0, to, data = '0x', gas, maxFeePerGas, maxPriorityFeePerGas } = given;
  if (given.type !== 'eip1559' || chainId === undefined || to == null || gas === undefined)
    throw new Error('the logged bytes are no transaction of type 2');
  const fees = { maxFeePerGas: maxFeePerGas ?? 0n, maxPriorityFeePerGas: maxPriorityFeePerGas ?? 0n };
  return { chainId, nonce, to: to.toLowerCase(), data: data.toLowerCase(), gas: Number(gas), ...fees };
}
