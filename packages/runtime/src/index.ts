export * from './config.ts';
export * from './logger.ts';
export * from './metrics.ts';
export * from './service.ts';
