import { type AuditEntry, createAuditLog } from '@playline/access-keys';
import { ADDRESS_EXPECTED, auditEntryCodec, parseAddress, TOPICS } from '@playline/contracts';
import type { MintCollection, MintState } from '@playline/mints';
import type { Producer } from '@playline/stream';
import { awaitWritable } from '../await-schema.ts';
import { EXIT, type ExitCode, isMeant, type Terminal, textOf, UsageError, type Values } from '../command.ts';
import { type GivenUp, type GiveUpOrder, type GiveUpParts, giveUpMints } from './give-up.ts';

export interface GiveUpContext extends Omit<GiveUpParts, 'audit' | 'wallClockMs'> {
  readonly openProducer: (topic: string) => Promise<Producer>;
  /** @throws Error when there is no such request */
  readonly find: (named: MintName) => Promise<MintState>;
}

/** A request by its reference id. */
export interface MintName {
  readonly collection: MintCollection;
  /** Null: the project that has the collection. */
  readonly projectId: string | null;
  readonly referenceId: string;
}

/** What to give up, from the options of the command. */
export type GiveUpTarget =
  | ({ readonly kind: 'asset' } & MintName)
  | { readonly kind: 'signer'; readonly chain: string; readonly signer: string };

/** The reason is shown, as a sentence, to whoever requested the asset. */
const REASON_MAX = 300;

/** @throws UsageError */
export function reasonOf(values: Values): string {
  const reason = textOf(values, 'reason')?.trim() ?? '';
  if (reason === '' || reason.length > REASON_MAX)
    throw new UsageError(`--reason: say why, in ${REASON_MAX} characters; whoever asked for the asset is told it`);
  return reason;
}

/** @throws UsageError */
export function signerOf(values: Values): { readonly chain: string; readonly signer: string } {
  const [chain, signer] = [textOf(values, 'chain') ?? '', parseAddress(textOf(values, 'signer') ?? '')];
  if (chain === '') throw new UsageError('--chain: name the chain of the signer, as "mints signers" shows it');
  if (signer === null) throw new UsageError(`--signer: expected ${ADDRESS_EXPECTED}`);
  return { chain, signer };
}

/** Gives up one asset or all of a signer after confirmation, and reports the result. */
export async function giveUp(
  context: GiveUpContext,
  { target, values }: { readonly target: GiveUpTarget; readonly values: Values },
  terminal: Terminal,
): Promise<ExitCode> {
  const order = await toOrder(context, target, reasonOf(values));
  if (!(await isMeant(`${toWhat(order)} This cannot be undone.`, values, terminal))) {
    terminal.progress('nothing was done');
    return EXIT.failed;
  }
  const given = await withAudit(context, (audit) => giveUpMints({ ...context, audit, wallClockMs: Date.now }, order));
  for (const line of toLines(given)) terminal.result(line);
  if (given.ended.length + given.carried.length > 0) return given.carried.length === 0 ? EXIT.ok : EXIT.failed;
  throw new Error(order.only === null ? 'nothing of it is pending' : NOT_TAKEN);
}

const NOT_TAKEN = 'the minter has not taken it yet, or it has come to its end just now: mints show says which';

async function toOrder(context: GiveUpContext, target: GiveUpTarget, reason: string): Promise<GiveUpOrder> {
  if (target.kind === 'signer') return { chain: target.chain, signer: target.signer, only: null, reason };
  const { chain, contractAddress, projectId, referenceId, signer, status } = await context.find(target);
  if (status !== 'pending') throw new Error(`it has ${status}: only what is pending is given up`);
  return { chain, signer, only: { contractAddress, projectId, referenceId }, reason };
}

const toWhat = ({ only, chain, signer }: GiveUpOrder) =>
  only === null
    ? `All pending assets of ${signer} on ${chain} that no signed transaction carries will have failed.`
    : `${only.referenceId} of ${only.contractAddress} will have failed, and its reference id be free again.`;

function toLines({ ended, carried }: GivenUp): readonly string[] {
  const name = ({ contractAddress, referenceId }: GivenUp['ended'][number]) =>
    `${referenceId} of 0x${contractAddress.toString('hex')}`;
  return [
    ...ended.map((state) => `given up: ${name(state)}`),
    ...carried.map(
      (state) => `left alone: ${name(state)}: its signed transaction, nonce ${state.nonce}, may still get in`,
    ),
  ];
}

async function withAudit<T>(
  { openProducer, schemas, topicPrefix }: GiveUpContext,
  work: (audit: (entry: AuditEntry) => Promise<void>) => Promise<T>,
): Promise<T> {
  const topic = topicPrefix + TOPICS.audit.name;
  const producer = await openProducer(topic);
  try {
    const schemaId = await awaitWritable({ producer, schemas }, topic, auditEntryCodec.schema);
    const audit = createAuditLog({ schemaId, send: (record) => producer.sendPlaced({ topic, ...record }) });
    return await work((entry) => audit.append(entry));
  } finally {
    await producer.close();
  }
}
