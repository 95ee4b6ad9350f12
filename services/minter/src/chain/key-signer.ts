import type { RecordCopy, SignableKeyRecord } from '@playline/access-keys';
import { parseTransaction } from 'viem/utils';
import type { LaneSigner, SignedTransaction, SignerLane, UnsignedTransaction } from '../ports.ts';
import { toHex } from './mint-calls.ts';

export interface KeySignerParts {
  /** Signable keys as they stand. */
  readonly keys: Pick<RecordCopy<SignableKeyRecord>, 'records' | 'ageMs'>;
  /** Opens the sealed key and signs; the private key stays in there. */
  readonly signTransaction: (
    record: SignableKeyRecord,
    transaction: UnsignedTransaction,
    options: { readonly isOpen: boolean },
  ) => Promise<SignedTransaction>;
}

/** Signs for a lane with the sealed key of its address. */
export function createKeySigner({ keys, signTransaction }: KeySignerParts, { signer }: SignerLane): LaneSigner {
  const address = toHex(signer);
  const find = () => keys.records.find((record) => record.address === address);
  const waits = (reason: string) => ({ kind: 'waits', reason }) as const;
  return {
    standing: (environmentId) => {
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

/** @throws Error for bytes that are no transaction of type 2 that calls something */
function readSigned(bytes: Buffer): UnsignedTransaction {
  const given = parseTransaction(toHex(bytes));
  const { chainId, nonce = 0, to, data = '0x', gas, maxFeePerGas, maxPriorityFeePerGas } = given;
  if (given.type !== 'eip1559' || chainId === undefined || to == null || gas === undefined)
    throw new Error('the logged bytes are no transaction of type 2');
  const fees = { maxFeePerGas: maxFeePerGas ?? 0n, maxPriorityFeePerGas: maxPriorityFeePerGas ?? 0n };
  return { chainId, nonce, to: to.toLowerCase(), data: data.toLowerCase(), gas: Number(gas), ...fees };
}
