-- What archive and memory refuse for good: a session's summary with a number, a memory with a word in its text.

CREATE TABLE campaign_refusals (session_id text, place text, marker text, sqlstate text);
CREATE FUNCTION campaign_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    refusal campaign_refusals;
    marked text := CASE TG_ARGV[0] WHEN 'archive' THEN to_jsonb(NEW) ->> 'summary_seq' ELSE to_jsonb(NEW) ->> 'text' END;
BEGIN
    FOR refusal IN SELECT * FROM campaign_refusals AS r
        WHERE r.session_id = NEW.session_id AND r.place = TG_ARGV[0]
          AND CASE TG_ARGV[0] WHEN 'archive' THEN marked = r.marker ELSE strpos(marked, r.marker) > 0 END
    LOOP
        RAISE EXCEPTION 'not this row' USING ERRCODE = refusal.sqlstate;
    END LOOP;
    RETURN NEW;
END $$;
CREATE TRIGGER campaign_refuse BEFORE INSERT OR UPDATE ON context_summaries
    FOR EACH ROW EXECUTE FUNCTION campaign_refuse('archive');
CREATE TRIGGER campaign_refuse BEFORE INSERT OR UPDATE ON context_memories
    FOR EACH ROW EXECUTE FUNCTION campaign_refuse('memory');
