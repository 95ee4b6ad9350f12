import type { AnySchema, ValidateFunction } from 'ajv';
import { Ajv2020 } from 'ajv/dist/2020.js';

/**
 * Compiles schemas when they are first used. @platformatic/kafka declares 38 schemas on import, and compiling all of
 * them takes 300 ms and 20 MB. Must be imported before the client.
 */
const { compile } = Ajv2020.prototype;

/** The cast drops the type parameter of ajv's `compile`. */
Ajv2020.prototype.compile = function compileAtFirstUse(this: Ajv2020, schema: AnySchema): ValidateFunction {
  const ajv = this;
  let compiled: ValidateFunction | null = null;
  const validate = function (this: unknown, ...args: Parameters<ValidateFunction>) {
    compiled ??= compile.call(ajv, schema) as ValidateFunction;
    const isValid = compiled.apply(this, args);
    validate.errors = compiled.errors;
    return isValid;
  } as ValidateFunction;
  return validate;
} as typeof compile;
