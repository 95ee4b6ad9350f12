export * from './config.ts';
export * from './connection-settings.ts';
export * from './deployment-settings.ts';
export * from './logger.ts';
export * from './metrics.ts';
export * from './service.ts';
export * from './tracing.ts';
export * from './version.ts';
