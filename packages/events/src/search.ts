/** Conditions of a search for messages, and the same search as a query over the views of analysts. */
import { quoteText } from '@playline/stores';

export const PROPERTY_OPERATORS = ['eq', 'ne', 'exists', 'gt', 'lt'] as const;

/** A condition on a top-level property. `gt` and `lt` compare numbers; `value` must then be a number. */
export interface PropertyFilter {
  readonly name: string;
  readonly operator: (typeof PROPERTY_OPERATORS)[number];
  readonly value: string;
}

/** Empty filters match everything. */
export interface MessageFilter {
  readonly type?: string;
  readonly name?: string;
  readonly surface?: string;
  readonly test?: boolean;
  readonly property?: PropertyFilter | null;
  /** Matches messages that contain one of these identity keys in any field. */
  readonly identityIds?: readonly string[] | undefined;
}

export const toWhere = (conditions: readonly string[]) =>
  conditions.length === 0 ? '' : `WHERE ${conditions.join('\n  AND ')}`;

/** Returns conditions on columns that `portal_messages` and the views of analysts share. */
export function toConditions(search: MessageFilter, properties = 'properties'): string[] {
  const { type = '', name = '', surface = '', test, property, identityIds } = search;
  const conditions = Object.entries({ event_name: name, type, surface })
    .filter(([, value]) => value !== '')
    .map(([column, value]) => `${column} = ${quoteText(value)}`);
  if (test !== undefined) conditions.push(test ? 'test' : 'NOT test');
  if (property != null) conditions.push(toPropertyCondition(properties, property));
  if (identityIds !== undefined) conditions.push(toIdentityCondition(identityIds));
  return conditions;
}

function toIdentityCondition(identityIds: readonly string[]): string {
  if (identityIds.length === 0) return 'false';
  const keys = identityIds.map((id) => `toFixedString(unhex(${quoteText(id)}), 16)`).join(', ');
  const columns = ['identity_key', 'anonymous_key', 'from_key', 'to_key'];
  return `(${columns.map((column) => `${column} IN (${keys})`).join(' OR ')})`;
}

function toPropertyCondition(properties: string, { name, operator, value }: PropertyFilter): string {
  // ClickHouse evaluates equal expressions once, so the properties of a message are parsed only once.
  const [json, number] = [`JSONExtractRaw(${properties}, ${quoteText(name)})`, Number(value)];
  if (operator === 'exists') return `${json} != ''`;
  if (operator === 'gt' || operator === 'lt')
    return `(JSONType(${json}) IN ('Int64', 'UInt64', 'Double') AND JSONExtractFloat(${json}) ${operator === 'gt' ? '>' : '<'} ${number})`;
  const equals = [`if(startsWith(${json}, '"'), JSONExtractString(${json}), ${json}) = ${quoteText(value)}`];
  // 12.50 equals 12.5, but integers are compared as text, because a double cannot represent large ids.
  if (value !== '' && Number.isFinite(number))
    equals.push(`(JSONType(${json}) = 'Double' AND JSONExtractFloat(${json}) = ${number})`);
  // ClickHouse returns 3.0 as 3.
  if (/^-?\d+\.0+$/.test(value)) equals.push(`${json} = '${number}'`);
  return `(${json} != '' AND ${operator === 'ne' ? 'NOT ' : ''}(${equals.join(' OR ')}))`;
}

/** A page of messages, newest first: up to a time, or after the last message of the previous page. */
export interface AnalystSearch extends MessageFilter {
  readonly environmentId: string;
  readonly test: boolean;
  readonly sinceMs: number;
  readonly untilMs: number;
  readonly idAccess: 'raw ids' | 'masked ids';
  readonly after?: { readonly happenedMs: number; readonly messageId: string } | undefined;
  readonly messagesMax?: number;
}

/**
 * Returns the query that an analyst with the viewer's rights runs for the same page of messages. The analysis views
 * contain neither test messages nor keys of other identities, so these searches read a view with all columns.
 */
export function toAnalystQuery(search: AnalystSearch): string {
  const { environmentId, sinceMs, untilMs, idAccess, test, identityIds, after, messagesMax = 100, ...filter } = search;
  const isRaw = idAccess === 'raw ids';
  const isExact = isRaw && (test || identityIds !== undefined);
  const view = isExact ? 'events_exact' : isRaw ? 'analysis_events_raw' : test ? 'analysis_tests' : 'analysis_events';
  const time = (ms: number) => `toDateTime64('${new Date(ms).toISOString().slice(0, -1).replace('T', ' ')}', 3, 'UTC')`;
  const properties = isRaw ? 'properties' : 'safe_properties';
  const ids = isRaw ? ['user_id', 'anonymous_id'] : ['person_id', 'session_id'];
  const end = time(after?.happenedMs ?? untilMs);
  const isBefore =
    after === undefined || after.messageId === ''
      ? `event_time < ${end}`
      : `(event_time < ${end} OR (event_time = ${end} AND message_id < toUUID(${quoteText(after.messageId)})))`;
  const range = [`environment_id = ${quoteText(environmentId)}`, `event_time >= ${time(sinceMs)}`, isBefore];
  const exact = isExact ? { test, identityIds } : {};
  const conditions = toConditions({ ...filter, ...exact }, properties);
  return `SELECT event_time, type, event_name, surface, library, library_version, ${ids.join(', ')}, ${properties}, message_id
FROM ${view}
${toWhere([...range, ...conditions])}
ORDER BY event_time DESC, message_id DESC
LIMIT ${messagesMax}`;
}

/** As in `safe_properties` of the analysis views. */
export const toSafeProperties = (names: readonly string[]) =>
  `concat('{', arrayStringConcat(arrayMap(property -> concat(toJSONString(property.1), ':', property.2), arrayFilter(property -> has(CAST([${names.map(quoteText).join(', ')}], 'Array(String)'), property.1), JSONExtractKeysAndValuesRaw(properties))), ','), '}')`;
