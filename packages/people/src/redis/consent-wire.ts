import type { ApplyOutcome, ChosenStatus, ConsentStanding, StoredConsent } from '../consents.ts';
import { NUMBER_BYTES } from './layout.ts';

// Letters that are stored in Redis. They must not change, even if a list is reordered.
const STATUS_LETTERS: Readonly<Record<ChosenStatus, string>> = { none: 'n', anonymous: 'a', full: 'f' };
const OUTCOMES: Readonly<Record<string, ApplyOutcome>> = { a: 'applied', s: 'superseded', f: 'fenced' };
const STATUSES = new Map(
  (Object.keys(STATUS_LETTERS) as ChosenStatus[]).map((status) => [STATUS_LETTERS[status], status]),
);

/** Status letter, partition, offset, logged at, received at: 21 bytes, which `put-consent.lua` unpacks too. */
const AT = {
  status: 0,
  partition: 1,
  offset: 3,
  loggedAt: 3 + NUMBER_BYTES,
  receivedAt: 3 + 2 * NUMBER_BYTES,
  end: 3 + 3 * NUMBER_BYTES,
} as const;

export function toValue({ status, receivedAt, place }: StoredConsent): Buffer {
  const value = Buffer.alloc(AT.end);
  value.write(STATUS_LETTERS[status], AT.status, 'latin1');
  value.writeUInt16BE(place.partition, AT.partition);
  value.writeUIntBE(place.offset, AT.offset, NUMBER_BYTES);
  value.writeUIntBE(place.loggedAtMs, AT.loggedAt, NUMBER_BYTES);
  value.writeUIntBE(Math.max(0, receivedAt), AT.receivedAt, NUMBER_BYTES);
  return value;
}

/** @throws Error when the value is not one of ours */
export function fromValue(value: Buffer): StoredConsent {
  const status = STATUSES.get(value.toString('latin1', AT.status, AT.partition));
  if (status === undefined || value.length !== AT.end) throw new Error('a stored consent cannot be read');
  const place = {
    partition: value.readUInt16BE(AT.partition),
    offset: value.readUIntBE(AT.offset, NUMBER_BYTES),
    loggedAtMs: value.readUIntBE(AT.loggedAt, NUMBER_BYTES),
  };
  return { status, receivedAt: value.readUIntBE(AT.receivedAt, NUMBER_BYTES), place };
}

/** @throws Error when the script replied something else */
export function fromReply(reply: unknown): ApplyOutcome {
  const outcome = OUTCOMES[String(reply)];
  if (outcome === undefined) throw new Error('the consent script replied something unknown');
  return outcome;
}

/** @param reply of `consent-standing.lua` */
export function fromStanding(reply: unknown): ConsentStanding {
  const [present, ...flat] = (reply as [Buffer, Buffer[]]).flat().map(String);
  const run = present ?? '';
  const fields = new Map(flat.flatMap((field, at) => (at % 2 === 0 ? [[field, flat[at + 1] ?? ''] as const] : [])));
  const isCurrent = fields.get('run') === run;
  fields.delete('run');
  return {
    run,
    isCurrent,
    applied: new Map([...fields].map(([partition, last]) => [Number(partition), Number(last)])),
  };
}
