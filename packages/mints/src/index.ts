export * from './accept.ts';
export * from './asset.ts';
export { type Attribute, DISPLAY_TYPES, type TokenMetadata } from './bodies/metadata.ts';
export * from './bodies/refresh-bodies.ts';
export { isReferenceId, REFERENCE_CODE_POINTS_MAX } from './bodies/values.ts';
export * from './claims.ts';
export * from './states.ts';
export * from './store.ts';
export * from './view.ts';
