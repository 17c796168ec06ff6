-- Names made to break a report: markup, quotes, separators, control characters, escape sequences,
-- bytes that are not UTF-8, text that turns its surroundings around, 10 kB.
INSERT INTO capture(state, perfkit_version, command, directory, host, kernel, cpu, cpu_count,
  start_realtime_ns, start_mono_ns, duration, exit_status, trace)
VALUES('complete', '0.1.0', './a "b" ''c'' </script><img src=x onerror=alert(1)> | `id`', '/tmp/<b>',
  'host"><i>', 'Linux', 'cpu & co', 4, 1785549185123456789, 1, 1000000, 0, 'cuda');
INSERT INTO process(pid, command, birth, start, end, end_reason, exit_status, spool)
VALUES(77, './a </script>', 'start', 0, 1000000, 'exit', 0, 's');
INSERT INTO thread(process, tid, name) VALUES(1, 77, CAST(x'3c2f7363726970743e1b5b33316dff' AS TEXT));
INSERT INTO device(process, api, ordinal, name, kind) VALUES(1, 'opencl', 0, '<svg onload=alert(2)>', 'cpu');
INSERT INTO stream(process, device, api, native, name) VALUES(1, 1, 'opencl', 94000000000000, '"queue" </script>');
INSERT INTO string(id, value) VALUES
  (1, '</script><script>window.broken=1</script>'), (2, '<!--<script>'), (3, '"; alert(1); //'),
  (4, CAST(x'1b5d303b7469746c6507' || 'escape' || x'0a0d09' || 'lines' AS TEXT)),
  (5, CAST('bad' || x'ff80c3' || 'bytes' AS TEXT)), (6, 'a;b;c d'), (7, 'cell | pipe ` tick * star @user [x](y)'),
  (8, CAST('rtl' || x'e280ae' || 'gpj.exe' || x'e2808f' AS TEXT)), (9, '核心カーネル 🚀 e' || char(769)),
  (10, replace(hex(zeroblob(5000)), '0', 'x')), (11, '=HYPERLINK("http://x","y"),1'), (12, ''),
  (13, 'clEnqueueNDRangeKernel</script>'), (14, '${x} {{y}} %s %n &amp; &lt;'), (15, '__proto__'), (16, 'constructor');
INSERT INTO launch_config(name, grid_x, grid_y, grid_z) SELECT id, 1, 1, 1 FROM string WHERE id <> 13;
INSERT INTO kernel(start, duration, stream, config, api_name, api_lead, api_duration, thread)
  SELECT id * 50000, 20000 + id, 1, id, 13, 5000, 3000, 1 FROM launch_config;
INSERT INTO range(start, duration, thread, name, depth, domain) SELECT 40000 + id * 50000, 45000, 1, id, 0, id FROM string WHERE id <> 13;
INSERT INTO marker(start, thread, name, domain) SELECT 41000 + id * 50000, 1, id, 1 FROM string WHERE id < 6;
INSERT INTO transfer(start, duration, stream, bytes, kind, api_name, api_lead, api_duration, thread) VALUES(900000, 10000, 1, 100, 11, 1, 100, 50, 1);
INSERT INTO capture_health(process, subject, item, value, note) VALUES(1, 'collector', 'x</script>', NULL, 'note <b>bold</b> </script>');
