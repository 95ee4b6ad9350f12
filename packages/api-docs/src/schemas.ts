import { errorEnvelopeSchema } from '@playline/contracts';
import { z } from 'zod';
import type { JsonSchema } from './operation.ts';
import type { DocsSource } from './source.ts';

const REF = '#/components/schemas/';

/** Request schemas allow unknown members, which the service ignores; answer schemas do not. */
export type Direction = 'input' | 'output';

/** The schema of a part of an operation: a reference when it has a name. */
export function toSchema(schema: z.ZodType, io: Direction = 'input'): JsonSchema {
  const { $schema: _dialect, $defs: _named, ...own } = rewrite(z.toJSONSchema(schema, { io })) as JsonSchema;
  return own;
}

/** The schema of a parameter, without references. */
export function toWholeSchema(schema: z.ZodType): JsonSchema {
  const { $schema: _dialect, $defs, $ref, ...own } = z.toJSONSchema(schema, { io: 'input' }) as JsonSchema;
  const named = $ref === undefined ? {} : ($defs as Record<string, JsonSchema>)[String($ref).replace('#/$defs/', '')];
  return { ...named, ...own };
}

/** All named schemas of the operations, and that of the envelope. */
export function createComponentSchemas({ operations, refineSchemas }: DocsSource): Record<string, JsonSchema> {
  const requests = operations.flatMap(({ parameters, body }) => [...parameters, ...(body === null ? [] : [body])]);
  const answers = operations.flatMap((operation) => operation.answers.flatMap(({ schema }) => schema ?? []));
  const schemas = {
    ...generate(
      requests.map(({ schema }) => schema),
      'input',
    ),
    ...generate([...answers, errorEnvelopeSchema], 'output'),
  };
  return refineSchemas === undefined ? schemas : refineSchemas(schemas);
}

/** The named schemas that are reachable from the roots. */
function generate(roots: readonly z.ZodType[], io: Direction): Record<string, JsonSchema> {
  const named = roots.map((root) => z.toJSONSchema(root, { io }).$defs ?? {});
  return rewrite(Object.fromEntries(named.flatMap((schemas) => Object.entries(schemas)))) as Record<string, JsonSchema>;
}

/** Adapts references to OpenAPI, and drops the rule that names of members are strings. */
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
