import { errorEnvelopeSchema } from '@playline/contracts';
import { z } from 'zod';
import type { JsonSchema } from './operation.ts';
import type { DocsSource } from './source.ts';

const REF = '#/components/schemas/';

/** Request schemas allow unknown fields, which the service ignores. Response schemas do not allow unknown fields. */
export type Direction = 'input' | 'output';

/** Converts a schema to JSON Schema. Named schemas become references. */
export function toSchema(schema: z.ZodType, io: Direction = 'input'): JsonSchema {
  const { $schema: _dialect, $defs: _named, ...rest } = toOpenApiSchema(z.toJSONSchema(schema, { io })) as JsonSchema;
  return rest;
}

/** Converts the schema of a parameter to JSON Schema and resolves references. */
export function resolveSchema(schema: z.ZodType): JsonSchema {
  const { $schema: _dialect, $defs, $ref, ...rest } = z.toJSONSchema(schema, { io: 'input' }) as JsonSchema;
  const named = $ref === undefined ? {} : ($defs as Record<string, JsonSchema>)[String($ref).replace('#/$defs/', '')];
  return { ...named, ...rest };
}

/** Returns all named schemas, including the error envelope. */
export function createComponentSchemas({ operations, refineSchemas }: DocsSource): Record<string, JsonSchema> {
  const requests = operations.flatMap(({ parameters, body }) => [...parameters, ...(body === null ? [] : [body])]);
  const responses = operations.flatMap((operation) => operation.responses.flatMap(({ schema }) => schema ?? []));
  const schemas = {
    ...generate(
      requests.map(({ schema }) => schema),
      'input',
    ),
    ...generate([...responses, errorEnvelopeSchema], 'output'),
  };
  return refineSchemas === undefined ? schemas : refineSchemas(schemas);
}

/** Returns the named schemas to which `roots` refer. */
function generate(roots: readonly z.ZodType[], io: Direction): Record<string, JsonSchema> {
  const named = roots.map((root) => z.toJSONSchema(root, { io }).$defs ?? {});
  const merged = Object.fromEntries(named.flatMap((schemas) => Object.entries(schemas)));
  return toOpenApiSchema(merged) as Record<string, JsonSchema>;
}

/** Converts references to OpenAPI. Drops `propertyNames`, which is redundant because property names are strings. */
function toOpenApiSchema(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(toOpenApiSchema);
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).filter(([keyword]) => keyword !== 'propertyNames');
  return Object.fromEntries(
    entries.map(([keyword, inner]) => [
      keyword,
      keyword === '$ref' ? String(inner).replace('#/$defs/', REF) : toOpenApiSchema(inner),
    ]),
  );
}
