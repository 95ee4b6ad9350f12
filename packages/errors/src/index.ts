export * from './catalogue.ts';
export * from './connections/explain.ts';
export * from './connections/faults.ts';
export * from './connections/gate.ts';
export * from './connections/pace.ts';
export * from './envelope.ts';
export * from './public-error.ts';
export * from './rejections.ts';
