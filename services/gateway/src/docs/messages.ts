import { type Article, type HtmlValue, html, toCodeBlock, toCodeSpans, toSizeText, toTable } from '@playline/api-docs';
import {
  BATCH_BYTES_MAX,
  BATCH_MESSAGES_MAX,
  CONSENT_BYTES_MAX,
  CONSENT_SOURCE_CODE_POINTS_MAX,
  EVENT_AGE_MAX_MS,
  EVENT_AHEAD_MAX_MS,
  FREE_FORM_DEPTH_MAX,
  MESSAGE_BYTES_MAX,
  MESSAGE_TYPES,
  type MessageType,
  messageSchema,
  REQUIRED_BY_TYPE,
  type RejectionCode,
  toDurationText,
  toNumberText,
} from '@playline/contracts';
import { z } from 'zod';
import type { Config } from '../config.ts';
import { rateLimitSettings } from '../rate-limits/settings.ts';
import type { ExampleContext } from './examples.ts';

/** The settings whose values the documentation states. */
export type DocsLimits = Pick<
  Config,
  'EVENT_AGE_MAX_MS' | 'EVENT_AHEAD_MAX_MS' | Exclude<keyof typeof rateLimitSettings, 'RATE_LIMITS_BY_ENVIRONMENT'>
>;

export const DEFAULT_LIMITS: DocsLimits = {
  EVENT_AGE_MAX_MS,
  EVENT_AHEAD_MAX_MS,
  ...z.object(rateLimitSettings).parse({ TRUSTED_PROXIES: '0' }),
};

type Schema = { readonly [keyword: string]: unknown } & { readonly description?: string };

/** A field of a message, as the contract describes it. */
export interface FieldFacts {
  /** As in the `field` of a rejection: `context.library`. */
  readonly name: string;
  readonly description: string;
  readonly example: unknown;
  readonly isRequired: boolean;
  readonly rule: string;
  /** The codes with which an invalid value is rejected. */
  readonly codes: readonly RejectionCode[];
}

const { Message, EventContext } = z.toJSONSchema(messageSchema, { io: 'input' }).$defs as Record<string, Schema>;

/** Returns the fields in the order of the contract. */
export function createFieldFacts({ limits = DEFAULT_LIMITS }: Pick<ExampleContext, 'limits'>): FieldFacts[] {
  const fieldsOf = ({ properties, required }: Schema, prefix: string) =>
    Object.entries(properties as Record<string, Schema>).map(([name, schema]) => {
      const isRequired = (required as string[]).includes(name);
      return toFacts(prefix + name, { schema, isRequired, limits });
    });
  return [...fieldsOf(Message!, ''), ...fieldsOf(EventContext!, 'context.')];
}

interface FieldContext {
  readonly schema: Schema;
  readonly isRequired: boolean;
  readonly limits: DocsLimits;
}

function toFacts(name: string, { schema, isRequired, limits }: FieldContext): FieldFacts {
  const [inner = schema] = (schema.anyOf ?? []) as Schema[];
  const codes: RejectionCode[] = ['INVALID_FORMAT'];
  if (isRequired || REQUIRED_BY_TYPE.some(({ field }) => field === name)) codes.unshift('MISSING_REQUIRED_FIELD');
  if (inner.enum !== undefined) codes.push(name === 'type' ? 'UNSUPPORTED_TYPE' : 'INVALID_ENUM');
  const hasBound = inner.maxLength ?? (inner.format === 'date-time' || /object|number/.test(String(inner.type)));
  if (hasBound) codes.push('INVALID_VALUE');
  if (name === 'messageId') codes.push('DUPLICATE_MESSAGE_ID');
  const [example] = (schema.examples ?? []) as unknown[];
  return { name, description: schema.description ?? '', example, isRequired, rule: toRule(name, inner, limits), codes };
}

function toRule(name: string, { enum: values, maxLength, format, type, $ref }: Schema, limits: DocsLimits): string {
  const jsonType = [type].flat().find((one) => one !== 'null');
  if ($ref !== undefined) return 'object with the context fields below';
  if (Array.isArray(values)) return `one of ${values.map((value) => `\`${value}\``).join(', ')}`;
  if (format === 'uuid') return 'UUID of any version, unique in the batch';
  if (format === 'date-time') return `RFC 3339 timestamp, ${toWindowText(limits)}`;
  if (jsonType === 'object') return `JSON object with up to ${FREE_FORM_DEPTH_MAX} levels of nesting`;
  if (maxLength === undefined) return jsonType === 'number' ? 'finite number' : String(jsonType);
  return `string of up to ${toNumberText(Number(maxLength))} characters${name === 'toId' ? ', different from `fromId`' : ''}`;
}

const toWindowText = ({ EVENT_AGE_MAX_MS: age, EVENT_AHEAD_MAX_MS: ahead }: DocsLimits): string =>
  `at most ${toDurationText(age)} old and at most ${toDurationText(ahead)} in the future`;

const TYPES: Readonly<Record<MessageType, { readonly about: string; readonly fields: readonly string[] }>> = {
  track: { about: 'Something happened in the game.', fields: ['eventName', 'properties'] },
  page: { about: 'The player opened a page of a website.', fields: ['eventName', 'properties'] },
  screen: { about: 'The player opened a screen of the game.', fields: ['eventName', 'properties'] },
  identify: {
    about: 'The player signed in. Links `anonymousId` with `userId`, and stores traits.',
    fields: ['userId', 'identityType', 'traits'],
  },
  alias: {
    about: 'Two ids belong to one person. Links them.',
    fields: ['fromId', 'fromType', 'toId', 'toType'],
  },
};

const requiredOf = (type: MessageType): string[] =>
  REQUIRED_BY_TYPE.filter((one) => one.type === type).map(({ field }) => field);

/** Returns a message of each type that the gateway accepts. */
export function createSampleMessages({ nowMs }: Pick<ExampleContext, 'nowMs'>): Record<MessageType, object> {
  const facts = new Map(createFieldFacts({}).map(({ name, example }) => [name, example]));
  const samples = MESSAGE_TYPES.map((type) => {
    const ids = type === 'alias' ? [] : ['anonymousId'];
    const names = [...ids, ...TYPES[type].fields];
    const values = Object.fromEntries(names.map((name) => [name, facts.get(name)]));
    const eventName = { page: 'Play', screen: 'Shop' }[type as string];
    if (eventName !== undefined) Object.assign(values, { eventName, properties: { referrer: 'menu' } });
    const eventTimestamp = new Date(nowMs).toISOString();
    return [type, Object.assign({ type, messageId: facts.get('messageId'), eventTimestamp }, values)];
  });
  return Object.fromEntries(samples) as Record<MessageType, object>;
}

/** Links are relative to `/docs/`. */
const toCodes = (codes: readonly string[]): HtmlValue =>
  codes.map((code, index) => html`${index === 0 ? '' : ', '}<a href="rejections/${code}"><code>${code}</code></a>`);

/** Rows have ids, such as `track.eventName`, to which the search links. */
function toFieldTable(fields: readonly FieldFacts[], type?: MessageType): HtmlValue {
  const required = type === undefined ? [] : requiredOf(type);
  const prefix = `${type ?? 'field'}.`;
  const rows = fields.map(({ name, description, example, isRequired, rule, codes }) => [
    html`<code id="${prefix}${name}">${name}</code>${isRequired || required.includes(name) ? html` <b>required</b>` : ''}`,
    toCodeSpans(description),
    example === undefined ? '' : html`<code>${JSON.stringify(example)}</code>`,
    toCodeSpans(rule),
    toCodes(codes),
  ]);
  return toTable(['Field', 'Meaning', 'Example', 'Rule', 'Errors'], rows);
}

/** Lists the fields that can be rejected with a code, with their rules. */
export function createCodeDetails(context: Pick<ExampleContext, 'limits'>): (code: string) => HtmlValue {
  const facts = createFieldFacts(context);
  return (code) => {
    const rows = facts
      .filter(({ codes }) => codes.some((one) => one === code))
      .map(({ name, rule }) => [html`<code>${name}</code>`, toCodeSpans(rule)]);
    const whole = ['`message`', `at most ${toSizeText(MESSAGE_BYTES_MAX)} as sent in the body`].map(toCodeSpans);
    const all = code === 'INVALID_VALUE' ? [...rows, whole] : rows;
    return html`<h2 id="fields">Fields and their rules</h2>\n${toTable(['Field', 'Rule'], all)}`;
  };
}

export function createMessagesArticle(context: ExampleContext): Article {
  const facts = createFieldFacts(context);
  const special = new Set(Object.values(TYPES).flatMap(({ fields }) => fields));
  const samples = createSampleMessages(context);
  const factsOf = (names: readonly string[]) => facts.filter(({ name }) => names.includes(name));
  const sections = MESSAGE_TYPES.map((type) => {
    const { about, fields } = TYPES[type];
    return html`<h2 id="${type}"><code>${type}</code></h2>
<p>${toCodeSpans(about)}</p>
${toFieldTable(factsOf(fields), type)}${toCodeBlock(`example-${type}`, `Example: ${type}`, JSON.stringify(samples[type], null, 2))}`;
  });
  const overview = MESSAGE_TYPES.map((type) => [
    html`<a href="messages#${type}"><code>${type}</code></a>`,
    toCodeSpans(TYPES[type].about),
    toCodeSpans(
      requiredOf(type)
        .map((field) => `\`${field}\``)
        .join(', ') || 'nothing more',
    ),
  ]);
  const { limits = DEFAULT_LIMITS } = context;
  return {
    name: 'messages',
    area: 'Events',
    title: 'Messages',
    summary: 'Every field of a message: what it means, an example, its rule, and the code with which it is rejected.',
    content: html`<p>A batch is <code>{"messages": […]}</code> with 1 to ${BATCH_MESSAGES_MAX} messages. Every message requires <code>type</code>, <code>messageId</code> and <code>eventTimestamp</code>. Unknown fields are ignored. An optional field that is null counts as absent. Lengths are counted in Unicode characters.</p>
<h2 id="types">Types</h2>
${toTable(['Type', 'Reports', 'Also requires'], overview)}
<h2 id="window">Time window</h2>
<p>An <code>eventTimestamp</code> must be ${toWindowText(limits)}. Both bounds are inclusive and compared with the clock of the gateway. A message outside the window is rejected with ${toCodes(['INVALID_VALUE'])}; <code>message</code> names the bound.</p>
<h2 id="all">Fields of every message</h2>
${toFieldTable(facts.filter(({ name }) => !special.has(name) && !name.startsWith('context.')))}
${sections}
<h2 id="context">Context</h2>
<p>A message without a context is accepted. A context requires <code>library</code> and <code>libraryVersion</code>.</p>
${toFieldTable(facts.filter(({ name }) => name.startsWith('context.')))}
<p>See also: <a href="limits">limits</a>, <a href="identity">identity and its pitfalls</a>, <a href="reference">reference</a>.</p>`,
    files: [],
  };
}

export function createLimitsArticle({ limits = DEFAULT_LIMITS }: ExampleContext): Article {
  const link = (path: string, code: string): HtmlValue => html`<a href="${path}/${code}"><code>${code}</code></a>`;
  const refused = link('errors', 'VALIDATION_ERROR');
  const invalid = link('rejections', 'INVALID_VALUE');
  const slower = link('errors', 'TOO_MANY_REQUESTS_ERROR');
  const byLength = Map.groupBy(createFieldFacts({ limits }), ({ rule }) => /[\d,]+ characters/.exec(rule)?.[0] ?? '');
  byLength.delete('');
  const lengthRows = [...byLength].map(([length, fields]) => [
    fields.map(({ name }, index) => html`${index === 0 ? '' : ', '}<code>${name}</code>`),
    length,
    invalid,
  ]);
  const rate = (perSecond: number, burst: number) =>
    `${toNumberText(perSecond)} per second, bursts of ${toNumberText(burst)}`;
  return {
    name: 'limits',
    area: 'Events',
    title: 'Limits',
    summary:
      'All limits on the size, the time and the rate of requests, with the code that you receive beyond each limit.',
    content: html`<h2 id="sizes">Sizes</h2>
${toTable(
  ['Limit on', 'Maximum', 'Beyond it'],
  [
    ['messages in a batch', `${BATCH_MESSAGES_MAX} (at least 1)`, refused],
    ['a batch, after decompression', toSizeText(BATCH_BYTES_MAX), refused],
    ['a message, as sent in the body', toSizeText(MESSAGE_BYTES_MAX), invalid],
    [html`nesting of <code>properties</code> and <code>traits</code>`, `${FREE_FORM_DEPTH_MAX} levels`, invalid],
    ...lengthRows,
    [html`<code>source</code> of a consent change`, `${CONSENT_SOURCE_CODE_POINTS_MAX} characters`, refused],
    ['the body of a consent change', toSizeText(CONSENT_BYTES_MAX), refused],
  ],
)}
<h2 id="window">Time window</h2>
${toTable(
  [html`<code>eventTimestamp</code>`, 'Maximum', 'Beyond it'],
  [
    ['in the past', toDurationText(limits.EVENT_AGE_MAX_MS), invalid],
    ['in the future', toDurationText(limits.EVENT_AHEAD_MAX_MS), invalid],
  ],
)}
<h2 id="rates">Rates</h2>
${toTable(
  ['Limit on', 'Maximum', 'Beyond it'],
  [
    [
      'units per publishable key and its replacements',
      rate(limits.RATE_LIMIT_MESSAGES_PER_S, limits.RATE_LIMIT_BURST),
      slower,
    ],
    [
      'consent calls per client address',
      rate(limits.RATE_LIMIT_CONSENTS_PER_S, limits.RATE_LIMIT_CONSENTS_BURST),
      slower,
    ],
    ['invalid keys per client address', `${toNumberText(limits.RATE_LIMIT_FAILED_KEYS_PER_MINUTE)} per minute`, slower],
  ],
)}
<p>A batch costs one unit per message or per KiB (as sent or after decompression), whichever is highest. Rejected messages count. Every response has the headers <code>RateLimit</code> and <code>RateLimit-Policy</code>; a 429 also has <code>Retry-After</code> in seconds. An environment may have its own limit, which all its keys share and the Limits page of the portal shows.</p>
<p>The gateway also returns 429 while it has no memory for another body. Wait, then send the same request again: see <a href="retries">offline and retry</a>.</p>`,
    files: [],
  };
}
