import { randomBytes } from 'node:crypto';
import { smallMessage, until } from '@playline/testkit';
import { ENVIRONMENT_ID, type ErasureRig } from './rig.ts';

export type Message = Readonly<Record<string, unknown>> & { readonly messageId: string };

/** A person whose unique ids contain a token. */
export interface Person {
  readonly token: string;
  readonly anonymousId: string;
  readonly userId: string;
  readonly steamId: string;
  /** Identity keys of the three ids and of the untyped ids that links create. */
  readonly keys: readonly Buffer[];
  readonly anonymousKey: Buffer;
  readonly userKey: Buffer;
  readonly steamKey: Buffer;
}

export function createPerson({ keyer }: Pick<ErasureRig, 'keyer'>): Person {
  const token = `t${randomBytes(12).toString('hex')}`;
  const [anonymousId, userId, steamId] = [`visitor-${token}`, `player-${token}`, `account-${token}`];
  const [anonymousKey, userKey, steamKey] = [
    keyer(ENVIRONMENT_ID, 'anonymous', anonymousId),
    keyer(ENVIRONMENT_ID, 'passport', userId),
    keyer(ENVIRONMENT_ID, 'steam', steamId),
  ];
  const untyped = [userId, steamId].map((id) => keyer(ENVIRONMENT_ID, 'untyped', id));
  const keys = [anonymousKey, userKey, steamKey, ...untyped];
  return { token, anonymousId, userId, steamId, keys, anonymousKey, userKey, steamKey };
}

const messageOf = (type: string, fields: object): Message => smallMessage(type, { surface: 'web', ...fields });

export const track = (fields: object): Message => messageOf('track', fields);
export const asVisitor = ({ anonymousId }: Person) => ({ anonymousId });
export const asPlayer = ({ userId }: Person) => ({ userId, identityType: 'passport' });
export const identify = (person: Person, fields: object = {}): Message =>
  messageOf('identify', { ...asVisitor(person), ...asPlayer(person), ...fields });
export const alias = (person: Person, fields: object = {}): Message =>
  messageOf('alias', { fromId: person.steamId, fromType: 'steam', toId: person.userId, toType: 'passport', ...fields });

/** Messages of every type, with the token in every free-form field of the contract. */
export function fullMessages(person: Person): Message[] {
  const { token } = person;
  const text = (field: string) => `${field} ${token}`;
  const fields = {
    deviceId: text('device'),
    sessionId: text('session'),
    context: {
      library: text('library'),
      libraryVersion: text('1.0'),
      userAgent: text('agent'),
      locale: text('en'),
      timezone: text('Zone'),
      screen: text('1920x1080'),
      pageUrl: `https://game.example/${token}?who=${token}`,
      pagePath: `/${token}`,
      pageReferrer: `https://other.example/${token}`,
      pageTitle: text('title'),
      browserLanguage: text('de'),
    },
    properties: { [token]: token, nested: { list: [token, { [token]: 1 }] } },
    traits: { name: token, [token]: [token] },
  };
  return [
    track({ ...asVisitor(person), ...fields, eventName: text('event') }),
    track({ ...asPlayer(person), ...fields, anonymousId: person.anonymousId }),
    messageOf('page', { ...asVisitor(person), ...fields }),
    messageOf('screen', { ...asPlayer(person), ...fields }),
    identify(person, fields),
    alias(person, { ...fields, anonymousId: person.anonymousId }),
  ];
}

/** Waits until all messages are stored and all links are decided. */
export async function awaitStored(rig: ErasureRig, messages: readonly Message[]): Promise<void> {
  const count = async (table: string, sent: readonly Message[]) => {
    const ids = sent.map(({ messageId }) => `'${messageId}'`).join(', ');
    const [row] = await rig.query(`SELECT uniqExact(message_id) FROM ${table} WHERE message_id IN (${ids})`);
    return Number(row?.[0]);
  };
  const links = messages.filter(({ type }) => type === 'identify' || type === 'alias');
  await until('all messages are stored', async () => (await count('events', messages)) === messages.length);
  if (links.length === 0) return;
  await until('all links are decided', async () => (await count('identity_links', links)) === links.length);
  await until('all persons are stored', async () => {
    const ids = links.map(({ messageId }) => `'${messageId}'`).join(', ');
    const persons = '(SELECT identity_key, person_key FROM identity_overrides FINAL)';
    const [row] = await rig.query(`SELECT countIf(a.person_key != b.person_key OR empty(a.person_key))
      FROM identity_links AS link
      LEFT JOIN ${persons} AS a ON a.identity_key = link.a_key
      LEFT JOIN ${persons} AS b ON b.identity_key = link.b_key
      WHERE link.message_id IN (${ids}) AND link.outcome = 'linked'`);
    return Number(row?.[0]) === 0;
  });
}

// Tables with personal rows: the owner column, and columns that differ between duplicates. A republished decision has a
// different offset, and a row that is stored twice has two timestamps.
const OWNED: Readonly<Record<string, readonly [owner: string, differing: readonly string[]]>> = {
  events: ['identity_key', []],
  identity_links: ['a_key', ['kafka_partition', 'kafka_offset']],
  identity_overrides: ['identity_key', ['stored_at']],
  identity_unlinks: ['identity_key', []],
  consent_log: ['identity_key', []],
};

/** Reads a person's rows in all tables. Excludes duplicates, which a merge may remove at any time. */
export async function readRows(rig: ErasureRig, { keys }: Person): Promise<Record<string, string[]>> {
  const list = keys.map((key) => `unhex('${key.toString('hex')}')`).join(', ');
  const found: Record<string, string[]> = {};
  for (const [table, [owner, differing]] of Object.entries(OWNED)) {
    const columns = differing.length === 0 ? '*' : `* EXCEPT (${differing.join(', ')})`;
    const rows = await rig.query(
      `SELECT hex(formatRow('RowBinary', ${columns})) AS row FROM ${table} FINAL WHERE ${owner} IN (${list}) ORDER BY row`,
    );
    found[table] = rows.map(([row = '']) => row);
  }
  return found;
}
