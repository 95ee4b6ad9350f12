import { randomBytes } from 'node:crypto';
import { smallMessage, until } from '@playline/testkit';
import { ENVIRONMENT_ID, type ErasureRig } from './rig.ts';

export type Message = Readonly<Record<string, unknown>> & { readonly messageId: string };

/** A person with unique ids, each of which contains the token. */
export interface Person {
  readonly token: string;
  readonly anonymousId: string;
  readonly userId: string;
  readonly steamId: string;
  /** Identity keys of the three ids, and of the same ids without a type, as links create them. */
  readonly keys: readonly Buffer[];
  readonly anonymousKey: Buffer;
  readonly userKey: Buffer;
  readonly steamKey: Buffer;
}

/** Creates a person of whom no store has anything yet. */
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
/** Links the visitor with the player. */
export const identify = (person: Person, fields: object = {}): Message =>
  messageOf('identify', { ...asVisitor(person), ...asPlayer(person), ...fields });
/** Links the Steam account with the player. */
export const alias = (person: Person, fields: object = {}): Message =>
  messageOf('alias', {
    fromId: person.steamId,
    fromType: 'steam',
    toId: person.userId,
    toType: 'passport',
    ...fields,
  });

/** Messages of every type, with the token in every free-form field of the contract. */
export function messagesWith(person: Person): Message[] {
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

/** Waits until each of these messages is a row and each link is decided. */
export async function stored(rig: ErasureRig, messages: readonly Message[]): Promise<void> {
  const count = async (table: string, of: readonly Message[]) => {
    const ids = of.map(({ messageId }) => `'${messageId}'`).join(', ');
    const [row] = await rig.query(`SELECT uniqExact(message_id) FROM ${table} WHERE message_id IN (${ids})`);
    return Number(row?.[0]);
  };
  const links = messages.filter(({ type }) => type === 'identify' || type === 'alias');
  await until('all messages are stored', async () => (await count('events', messages)) === messages.length);
  if (links.length === 0) return;
  await until('all links are decided', async () => (await count('identity_links', links)) === links.length);
  await until('all persons are stored', async () => {
    const keys = links.flatMap(({ messageId }) => `'${messageId}'`).join(', ');
    const [row] = await rig.query(`SELECT count() FROM identity_links WHERE message_id IN (${keys})
      AND outcome = 'linked' AND a_key NOT IN (SELECT identity_key FROM identity_overrides)`);
    return Number(row?.[0]) === 0;
  });
}

/** All rows of a person in ClickHouse. */
export async function rowsAbout(rig: ErasureRig, { keys }: Person): Promise<Record<string, string[]>> {
  const list = keys.map((key) => `unhex('${key.toString('hex')}')`).join(', ');
  const owners = {
    events: 'identity_key',
    identity_links: 'a_key',
    identity_overrides: 'identity_key',
    identity_unlinks: 'identity_key',
    consent_log: 'identity_key',
  };
  const found: Record<string, string[]> = {};
  for (const [table, column] of Object.entries(owners)) {
    const rows = await rig.query(
      `SELECT DISTINCT hex(formatRow('RowBinary', *)) AS row FROM ${table} WHERE ${column} IN (${list}) ORDER BY row`,
    );
    found[table] = rows.map(([row = '']) => row);
  }
  return found;
}
