import {
  CONSENT_SOURCE_CODE_POINTS_MAX,
  CONSENT_STATUSES,
  errorEnvelopeSchema,
  ID_CODE_POINTS_MAX,
  messagesRequestSchema,
  messagesResponseSchema,
  REQUIRED_BY_TYPE,
} from '@playline/contracts';
import { z } from 'zod';

/** JSON Schema 2020-12, the dialect of OpenAPI 3.1. */
export type JsonSchema = { readonly [keyword: string]: unknown };

/** Not blank: specification, parts A and B. White space is what the pattern language calls `\s`, as for the gateway. */
const NOT_BLANK = '\\S';

/** Specification, query parameters `anonymousId` and `userId`. */
export const identifierSchema = z.string().meta({ minLength: 1, maxLength: ID_CODE_POINTS_MAX, pattern: NOT_BLANK });

/** Specification, table "TrackingConsent". */
export const trackingConsentSchema = z.object({ status: z.enum(CONSENT_STATUSES) }).meta({ id: 'TrackingConsent' });

/** Specification, table "UpdateTrackingConsentRequest". */
export const updateTrackingConsentSchema = z
  .object({
    anonymousId: identifierSchema,
    status: z.enum(CONSENT_STATUSES).exclude(['not_set']),
    source: z.string().meta({ minLength: 1, maxLength: CONSENT_SOURCE_CODE_POINTS_MAX, pattern: NOT_BLANK }),
  })
  .meta({ id: 'UpdateTrackingConsentRequest' });

const REQUESTS = [messagesRequestSchema, updateTrackingConsentSchema];
const ANSWERS = [messagesResponseSchema, trackingConsentSchema, errorEnvelopeSchema];

const REF = '#/components/schemas/';

/** The schema of a part of an operation: a reference when it has a name, else written out. */
export function toSchema(schema: z.ZodType): JsonSchema {
  const { $schema: _dialect, $defs: _named, ...own } = rewrite(z.toJSONSchema(schema, { io: 'input' })) as JsonSchema;
  return own;
}

/**
 * All named schemas, by name. Requests are open, since unknown members are ignored; answers are closed, since the
 * gateway sends nothing that is not written here.
 */
export function createComponentSchemas(): Record<string, JsonSchema> {
  const schemas = { ...generate(REQUESTS, 'input'), ...generate(ANSWERS, 'output') };
  const { EventContext, Message } = schemas;
  return {
    ...schemas,
    EventContext: withNotBlank(EventContext ?? {}, ['library', 'libraryVersion']),
    Message: { ...Message, allOf: createRulesByType() },
  };
}

/** The named schemas in and below the roots. */
function generate(roots: readonly z.ZodType[], io: 'input' | 'output'): Record<string, JsonSchema> {
  const named = roots.map((root) => z.toJSONSchema(root, { io }).$defs ?? {});
  return rewrite(Object.assign({}, ...named)) as Record<string, JsonSchema>;
}

/** Points references to where OpenAPI keeps schemas, and leaves out that names of members are text: JSON has no others. */
function rewrite(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(rewrite);
  if (typeof value !== 'object' || value === null) return value;
  const kept = Object.entries(value).filter(([keyword]) => keyword !== 'propertyNames');
  return Object.fromEntries(
    kept.map(([keyword, inner]) => [
      keyword,
      keyword === '$ref' ? String(inner).replace('#/$defs/', REF) : rewrite(inner),
    ]),
  );
}

function withNotBlank(schema: JsonSchema, names: readonly string[]): JsonSchema {
  const properties = { ...(schema.properties as Record<string, JsonSchema>) };
  for (const name of names) properties[name] = { ...properties[name], pattern: NOT_BLANK };
  return { ...schema, properties };
}

/** What a type needs beyond what every message needs: specification, part A, "Required per type". */
function createRulesByType(): JsonSchema[] {
  return REQUIRED_BY_TYPE.map(({ type, field }) => ({
    if: { properties: { type: { const: type } } },
    // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
    then: { required: [field], properties: { [field]: { type: 'string', pattern: NOT_BLANK } } },
  }));
}
