export * from './block-settings.ts';
export * from './config.ts';
export * from './connection-settings.ts';
export * from './connections.ts';
export * from './logger.ts';
export * from './metrics.ts';
export * from './service.ts';
export * from './store-fetch.ts';
