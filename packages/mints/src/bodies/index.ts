export { type Attribute, DISPLAY_TYPES, type TokenMetadata } from './metadata.ts';
export * from './mint-body.ts';
export * from './refresh-bodies.ts';
export { isReferenceId, REFERENCE_CODE_POINTS_MAX } from './values.ts';
