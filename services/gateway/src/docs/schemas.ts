import type { JsonSchema } from '@playline/api-docs';
import {
  CONSENT_SOURCE_CODE_POINTS_MAX,
  CONSENT_STATUSES,
  ID_CODE_POINTS_MAX,
  REQUIRED_BY_TYPE,
} from '@playline/contracts';
import { z } from 'zod';

/** White space as `\s` of the pattern language. */
const NOT_BLANK = '\\S';

/** Contract, "Subject". */
export const identifierSchema = z.string().meta({ minLength: 1, maxLength: ID_CODE_POINTS_MAX, pattern: NOT_BLANK });

/** Contract, "TrackingConsent". */
export const trackingConsentSchema = z.object({ status: z.enum(CONSENT_STATUSES) }).meta({ id: 'TrackingConsent' });

/** Contract, "UpdateTrackingConsentRequest". */
export const updateTrackingConsentSchema = z
  .object({
    anonymousId: identifierSchema,
    status: z.enum(CONSENT_STATUSES).exclude(['not_set']),
    source: z.string().meta({ minLength: 1, maxLength: CONSENT_SOURCE_CODE_POINTS_MAX, pattern: NOT_BLANK }),
  })
  .meta({ id: 'UpdateTrackingConsentRequest' });

/** Adds the rules that the contract checks in code: not blank, and required per type. */
export function refineSchemas(schemas: Readonly<Record<string, JsonSchema>>): Record<string, JsonSchema> {
  const { EventContext, Message } = schemas;
  return {
    ...schemas,
    EventContext: withNotBlank(EventContext ?? {}, ['library', 'libraryVersion']),
    Message: { ...Message, allOf: createRulesByType() },
  };
}

function withNotBlank(schema: JsonSchema, names: readonly string[]): JsonSchema {
  const properties = { ...(schema.properties as Record<string, JsonSchema>) };
  for (const name of names) properties[name] = { ...properties[name], pattern: NOT_BLANK };
  return { ...schema, properties };
}

/** Contract, "Required per type". */
function createRulesByType(): JsonSchema[] {
  return REQUIRED_BY_TYPE.map(({ type, field }) => ({
    if: { properties: { type: { const: type } } },
    // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
    then: { required: [field], properties: { [field]: { type: 'string', pattern: NOT_BLANK } } },
  }));
}
