import type { AnySchema, ValidateFunction } from 'ajv';
import { Ajv2020 } from 'ajv/dist/2020.js';

/**
 * Compiles schemas at their first use. @platformatic/kafka declares 38 schemas at import, and compiling them takes 300
 * ms and 20 MB. Must be imported before the client.
 */
const { compile } = Ajv2020.prototype;

/** The type of ajv's method is generic in the type that a schema accepts. */
Ajv2020.prototype.compile = function compileAtFirstUse(this: Ajv2020, schema: AnySchema): ValidateFunction {
  const ajv = this;
  let compiled: ValidateFunction | null = null;
  const validate = function (this: unknown, ...given: Parameters<ValidateFunction>) {
    compiled ??= compile.call(ajv, schema) as ValidateFunction;
    const isValid = compiled.apply(this, given);
    validate.errors = compiled.errors;
    return isValid;
  } as ValidateFunction;
  return validate;
} as typeof compile;
